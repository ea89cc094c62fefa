"""One parcel to a destination, cut smaller where the destination asks for it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Protocol

from google.protobuf.message import DecodeError

from memtrace_collector.exporter.delivery import DELIVERED, Delivery
from memtrace_collector.log.format import Encoding, Signal
from memtrace_collector.otlp.halving import count, halve
from memtrace_collector.processor.parcels import Parcel, Payload
from memtrace_collector.receiver.decode import InvalidRequestError
from memtrace_collector.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)


class Destination(Protocol):
    """See :class:`~memtrace_collector.exporter.otlp.OtlpDestination`; used by several threads."""

    @property
    def name(self) -> str: ...
    @property
    def encodings(self) -> Collection[Encoding]: ...
    @property
    def longest_text(self) -> int | None: ...
    def send(self, signal: Signal, payload: bytes, encoding: Encoding = ...) -> Delivery: ...


class Courier:
    """Sends parcels piece by piece and counts what became of them. Safe in any thread."""

    def __init__(self, destination: Destination, metrics: Metrics) -> None:
        self._destination = destination
        self._metrics = metrics
        self._refused_before: set[Signal] = set()

    def deliver(self, parcel: Parcel) -> Delivery:
        """Send what is left of a parcel; it keeps what has to be sent again.

        A piece that is too large is halved; a single span or log record that is too large is
        refused for good, as any other refusal that cannot pass.
        """
        while parcel.pieces:
            piece = parcel.pieces[0]
            delivery = self._destination.send(piece.signal, piece.body, piece.encoding)
            self._count("memtrace.forward.requests", 1, piece.signal, outcome=delivery.outcome)
            if delivery.outcome == "retry":
                return delivery
            halves = self._halves(piece) if delivery.is_too_large else ()
            if halves:
                self._count("memtrace.forward.split", 1, piece.signal)
            elif delivery.outcome == "refused":
                self._refused(parcel, piece, delivery)
            parcel.pieces.popleft()
            parcel.pieces.extendleft(reversed(halves))
        return DELIVERED

    def _halves(self, piece: Payload) -> tuple[Payload, ...]:
        """Empty where there is nothing to halve."""
        try:
            halves = halve(piece.as_protobuf().body)
        except (DecodeError, InvalidRequestError):
            return ()
        return tuple(Payload(piece.signal, half, "protobuf") for half in halves or ())

    def _refused(self, parcel: Parcel, piece: Payload, delivery: Delivery) -> None:
        """Loudly once per signal: a destination that takes no logs would say so every time."""
        signal = piece.signal
        rejected = delivery.rejected or _items(piece)
        self._count("memtrace.forward.rejected", rejected, signal)
        level = logging.DEBUG if signal in self._refused_before else logging.WARNING
        self._refused_before.add(signal)
        name, where = self._destination.name, tuple(parcel.first)
        logger.log(
            level, "%s refused %d %s at %s: %s", name, rejected, signal, where, delivery.message
        )

    def _count(self, name: str, value: int, signal: Signal, **attributes: str) -> None:
        self._metrics.add(name, value, signal=signal, **attributes)


def _items(piece: Payload) -> int:
    """Spans or log records of a piece; 1 for one that cannot be read."""
    try:
        return count(piece.as_protobuf().body)
    except (DecodeError, InvalidRequestError):
        return 1
