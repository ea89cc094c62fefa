"""What is on its way to a destination: requests made of one or more log records, in log order.

Export requests of one signal that are put one behind the other are one request: that is how
protobuf merges messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.log.format import Encoding, Signal
from memtrace_collector.log.position import LogPosition
from memtrace_collector.receiver.decode import decode


class Payload(NamedTuple):
    """Bytes to send, what they are, and how they are encoded."""

    signal: Signal
    body: bytes
    encoding: Encoding

    def as_protobuf(self) -> Payload:
        """The same in protobuf.

        Raises:
            InvalidRequestError: it cannot be read.
        """
        if self.encoding == "protobuf":
            return self
        message = decode(self.signal, self.encoding, self.body)
        return Payload(self.signal, bytes(message.SerializeToString()), "protobuf")


@dataclass(slots=True)
class Parcel:
    """One request, until it is answered for good.

    ``pieces``: the request, or the parts into which a destination made us cut it.
    ``end``: the position behind its last log record.
    ``is_put_back``: it is to be read from the log again, and not held until then.
    """

    pieces: deque[Payload]
    first: LogPosition
    end: LogPosition
    records: int
    is_put_back: bool = False

    @property
    def is_done(self) -> bool:
        return not (self.pieces or self.is_put_back)

    @property
    def size(self) -> int:
        """Bytes that are still to be sent."""
        return sum(len(piece.body) for piece in tuple(self.pieces))

    def put_back(self) -> None:
        """Hold its positions only."""
        self.pieces.clear()
        self.is_put_back = True

    def take_up(self, pieces: Iterable[Payload]) -> None:
        """Hold what is to be sent, as it is in the log by now."""
        self.pieces = deque(pieces)
        self.is_put_back = False


@dataclass(slots=True)
class Open:
    """A parcel that still takes records: those of one tenant and signal, as protobuf, while they
    fit.
    """

    limit: int
    """Bytes up to which records are put together."""
    _tenant: str = ""
    _payloads: list[Payload] = field(default_factory=list)
    _size: int = 0
    _first: LogPosition | None = None
    _end: LogPosition | None = None
    _records: int = 0

    def takes(self, tenant: str, payload: Payload | None) -> bool:
        """May the next record go with those before it? One of which nothing is sent always."""
        if payload is None or not self._payloads:
            return True
        before = self._payloads[0]
        return (
            tenant == self._tenant
            and payload.signal == before.signal
            and payload.encoding == before.encoding == "protobuf"
            and self._size + len(payload.body) <= self.limit
        )

    def add(
        self, tenant: str, payload: Payload | None, first: LogPosition, end: LogPosition
    ) -> None:
        """Add what is sent of the record between two positions, None for nothing."""
        if payload is not None:
            self._tenant = tenant
            self._payloads.append(payload)
            self._size += len(payload.body)
        self._first = self._first or first
        self._end = end
        self._records += 1

    def closed(self) -> Iterator[Parcel]:
        """What was added, as one request, if anything was. Empty afterwards."""
        if self._first is None or self._end is None:
            return
        parcel = Parcel(deque(_merged(self._payloads)), self._first, self._end, self._records)
        self._payloads, self._size, self._records = [], 0, 0
        self._first = self._end = None
        yield parcel


def _merged(payloads: list[Payload]) -> Iterator[Payload]:
    if payloads:
        body = b"".join([payload.body for payload in payloads])
        yield payloads[0]._replace(body=body)


@dataclass(slots=True)
class Window:
    """Parcels in log order, from the oldest that is not answered."""

    parcels: deque[Parcel] = field(default_factory=deque)

    def advance(self) -> tuple[LogPosition | None, int]:
        """Drop what is answered at the beginning: the position behind it, and its records."""
        end, records = None, 0
        while self.parcels and self.parcels[0].is_done:
            parcel = self.parcels.popleft()
            end, records = parcel.end, records + parcel.records
        return end, records

    def waiting(self) -> list[Parcel]:
        """Those that are not answered."""
        return [parcel for parcel in self.parcels if not parcel.is_done]
