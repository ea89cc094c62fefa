"""Sending on what the log received, behind the projection, each record once.

Several requests are under way at once, small records together in one. The cursor of a
destination moves only over what the destination has answered for good, without gaps. While it
does not answer nothing is held in memory but positions: the log is the queue. A crash
between delivery and cursor sends the requests once more that were under way.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from memtrace_collector.exporter.backoff import delay_seconds
from memtrace_collector.exporter.delivery import Delivery
from memtrace_collector.log.beginning import Missed
from memtrace_collector.log.durable_end import read_durable_end
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import Entry, Wait, read, report_missed
from memtrace_collector.processor.delivering import Courier, Destination
from memtrace_collector.processor.outgoing import ForwardStore, Outgoing
from memtrace_collector.processor.parcels import Open, Parcel, Payload, Window
from memtrace_collector.processor.quarantine import BAD_DATA
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.processor.sending import Senders
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

logger = logging.getLogger(__name__)

MAX_HELD_BYTES = 16 << 20
"""Of the requests that are not answered; a single larger one goes alone."""
_IDLE_SECONDS = 0.25
_UNSETTLED_SECONDS = 0.05
_AFTER_FAILURE_SECONDS = 1.0
_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 30.0
_NS = 1_000_000_000


class Cursors(Protocol):
    """Where the cursor of a destination is kept: a store that forwarding alone writes."""

    def cursor(self, name: str) -> LogPosition: ...
    def set_cursor(self, name: str, position: LogPosition) -> None: ...


class Stores(NamedTuple):
    """``facts``: what the projector fills."""

    facts: ForwardStore
    cursors: Cursors


class Pace(NamedTuple):
    """How a log is sent on.

    ``settle_seconds``: how long a record waits for its own projection, so that its links can be
    completed; then it goes on with what is known. ``connections``: requests under way at once.
    ``merge_bytes``: up to this size, which every destination takes, the records of one tenant
    and signal go as one request.
    """

    settle_seconds: float = 1.0
    connections: int = 4
    merge_bytes: int = 1 << 20


PACE = Pace()


class Progress(NamedTuple):
    """What one pass did (records over which the cursor moved), and why it ended."""

    records: int
    retry: Delivery | None = None
    unsettled: bool = False


@dataclass(slots=True)
class _Pass:
    """What is known of the pass under way."""

    stop: threading.Event | None
    records: int = 0
    retry: Delivery | None = None
    unsettled: bool = False

    @property
    def is_over(self) -> bool:
        return self.retry is not None or (self.stop is not None and self.stop.is_set())


class Forwarder:
    """Sends a log on to one destination.

    Args:
        stores: their ``cursors`` keep ``forward:<destination name>``.
        values: send captured content on as well.
        wait: ``SegmentLog.wait`` in the log owner's process; without it the folder is polled.
    """

    def __init__(
        self,
        log_folder: Path,
        stores: Stores,
        reader: RecordReader,
        destination: Destination,
        *,
        values: bool = False,
        pace: Pace = PACE,
        wait: Wait | None = None,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._folder = log_folder
        self._store, self._cursors = stores
        self._destination = destination
        self._cursor = f"forward:{destination.name}"
        self._settle_ns = int(pace.settle_seconds * _NS)
        self._wait = wait
        self._failures = 0
        self._is_refused = False
        self._metrics = metrics
        self._merge_bytes = pace.merge_bytes
        self._window = Window()
        courier = Courier(destination, metrics)
        self._senders = Senders(courier.deliver, pace.connections, "memtrace-forward")
        self._passes = Passes(
            "forwarding failed; it goes on where it was",
            "memtrace.forward.failures",
            metrics,
            pause_seconds=_AFTER_FAILURE_SECONDS,
        )
        self._outgoing = Outgoing(
            stores.facts,
            reader,
            encodings=destination.encodings,
            values=values,
            longest_text=destination.longest_text,
            metrics=metrics,
        )

    @property
    def is_held_up(self) -> bool:
        """The last request did not go through and is tried again."""
        return self._is_refused or self._passes.is_failing

    def run_once(self, stop: threading.Event | None = None) -> Progress:
        """Send on what is durable and settled, until the end, a refusal that may pass, or
        ``stop``.
        """
        now = _Pass(stop)
        self._settle_all(now)
        for parcel in self._window.waiting():
            if now.is_over:
                break
            parcel.take_up(self._pieces_of(parcel))
            self._submit(parcel, now)
        durable_end = read_durable_end(self._folder)
        position = self._read_to()
        for parcel in self._parcels(self._settled(position, now)):
            self._window.parcels.append(parcel)
            position = parcel.end
            self._submit(parcel, now)
            if now.is_over:
                break
        self._settle_all(now)
        for parcel in self._window.waiting():
            parcel.put_back()
        if (
            durable_end is not None
            and durable_end > position
            and not (now.is_over or now.unsettled)
        ):
            self._cursors.set_cursor(self._cursor, durable_end)  # only damage was left
        return Progress(now.records, now.retry, now.unsettled)

    def run(self, stop: threading.Event) -> None:
        """Follow the log until ``stop``, retrying with back-off what may pass later."""
        try:
            self._passes.run(lambda: self._follow(stop), stop)
        finally:
            self._senders.close()

    def _follow(self, stop: threading.Event) -> float:
        """One pass, and the wait for more; the seconds to pause after it."""
        progress = self.run_once(stop)
        self._is_refused = progress.retry is not None
        if progress.retry is not None:
            self._failures = 1 if progress.records else self._failures + 1
            return self._retry_delay(self._failures, progress.retry)
        self._failures = 0
        if progress.unsettled:
            return _UNSETTLED_SECONDS
        if progress.records:
            return 0.0
        if self._wait is None:
            return _IDLE_SECONDS
        self._wait(self._cursors.cursor(self._cursor), _IDLE_SECONDS)
        return 0.0

    def _read_to(self) -> LogPosition:
        """Up to where records are under way already."""
        if self._window.parcels:
            return self._window.parcels[-1].end
        position = self._cursors.cursor(self._cursor)
        if position == START:
            position = self._store.cursor(self._cursor)  # earlier releases kept it there
            if position > START:
                self._cursors.set_cursor(self._cursor, position)
        return position

    def _parcels(self, entries: Iterable[Entry]) -> Iterator[Parcel]:
        """What is sent of these records, as requests."""
        parcel = Open(self._merge_bytes)
        for entry in entries:
            tenant, payload = entry.record.tenant, self._prepare(entry)
            if not parcel.takes(tenant, payload):
                yield from parcel.closed()
            parcel.add(tenant, payload, entry.position, entry.next)
        yield from parcel.closed()

    def _settled(self, position: LogPosition, now: _Pass) -> Iterator[Entry]:
        """What is durable and projected, or has waited for that, from ``position`` on."""
        projected = self._store.cursor()
        for entry in read(self._folder, position, on_missed=self._missed):
            if now.is_over:
                return
            if entry.next > projected:
                projected = self._store.cursor()
                if entry.next > projected and not self._has_waited(entry):
                    now.unsettled = True
                    return
            yield entry

    def _missed(self, missed: Missed) -> None:
        report_missed(missed)
        self._metrics.add("memtrace.log.missed", missed.segments, reader="forward")

    def _pieces_of(self, parcel: Parcel) -> Iterator[Payload]:
        """What a parcel holds, as it is in the log by now: some of it may have been erased."""
        entries = read(self._folder, parcel.first, on_missed=self._missed)
        again = itertools.takewhile(lambda entry: entry.position < parcel.end, entries)
        return (piece for part in self._parcels(again) for piece in part.pieces)

    def _has_waited(self, entry: Entry) -> bool:
        return time.time_ns() - entry.record.time_ns >= self._settle_ns

    def _submit(self, parcel: Parcel, now: _Pass) -> None:
        """Send a parcel as soon as there is room, unless the pass is over by then."""
        while self._senders.is_full or (self._senders.under_way and self._holds_too_much()):
            self._settle(now)
        if not now.is_over and not parcel.is_done:
            self._senders.submit(parcel)
        self._advance(now)

    def _holds_too_much(self) -> bool:
        return sum(parcel.size for parcel in self._window.waiting()) > MAX_HELD_BYTES

    def _settle_all(self, now: _Pass) -> None:
        while self._senders.under_way:
            self._settle(now)
        self._advance(now)

    def _settle(self, now: _Pass) -> None:
        """Wait until something is answered."""
        done, _ = wait(self._senders.under_way, return_when=FIRST_COMPLETED)
        self._senders.under_way -= done
        for future in done:
            delivery = future.result()
            if delivery.outcome == "retry":
                now.retry = delivery
        self._advance(now)

    def _advance(self, now: _Pass) -> None:
        end, records = self._window.advance()
        if end is not None:
            self._cursors.set_cursor(self._cursor, end)
            now.records += records

    def _prepare(self, entry: Entry) -> Payload | None:
        try:
            return self._outgoing.prepare(entry.position, entry.record)
        except BAD_DATA as error:
            self._metrics.add("memtrace.forward.unreadable", 1)
            logger.warning(
                "the record at %s cannot be read and is not sent on: %s", entry.position, error
            )
            return None

    def _retry_delay(self, failures: int, delivery: Delivery) -> float:
        delay = delay_seconds(
            failures,
            first=_FIRST_RETRY_SECONDS,
            longest=_LONGEST_RETRY_SECONDS,
            key=self._destination.name,
        )
        return min(max(delay, delivery.retry_after_s or 0.0), _LONGEST_RETRY_SECONDS)
