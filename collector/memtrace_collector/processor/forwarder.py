"""Sending on what the log received, behind the projection, each record once.

The cursor of a destination moves only when the destination has answered for good. A crash
between delivery and cursor sends one record again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Protocol

from memtrace_collector.exporter.backoff import delay_seconds
from memtrace_collector.exporter.delivery import Delivery
from memtrace_collector.log.durable_end import read_durable_end
from memtrace_collector.log.format import Encoding, Signal
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import Entry, Wait, read
from memtrace_collector.processor.outgoing import ForwardStore, Outgoing, Payload
from memtrace_collector.processor.quarantine import BAD_DATA
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

logger = logging.getLogger(__name__)

SETTLE_SECONDS = 1.0
_IDLE_SECONDS = 0.25
_UNSETTLED_SECONDS = 0.05
_AFTER_FAILURE_SECONDS = 1.0
_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 30.0
_NS = 1_000_000_000


class Destination(Protocol):
    """See :class:`~memtrace_collector.exporter.otlp.OtlpDestination`."""

    @property
    def name(self) -> str: ...
    @property
    def encodings(self) -> Collection[Encoding]: ...
    def send(self, signal: Signal, payload: bytes, encoding: Encoding = ...) -> Delivery: ...


class Cursors(Protocol):
    """Where the cursor of a destination is kept: a store that forwarding alone writes."""

    def cursor(self, name: str) -> LogPosition: ...
    def set_cursor(self, name: str, position: LogPosition) -> None: ...


class Stores(NamedTuple):
    """``facts``: what the projector fills."""

    facts: ForwardStore
    cursors: Cursors


class Progress(NamedTuple):
    """What one pass did, and why it ended: a number of seconds to wait, or nothing left."""

    records: int
    retry: Delivery | None = None
    unsettled: bool = False


class Forwarder:
    """Sends a log on to one destination.

    Args:
        stores: their ``cursors`` keep ``forward:<destination name>``.
        values: send captured content on as well.
        settle_seconds: how long a record waits for its own projection, so that its links
            can be completed; then it goes on with what is known.
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
        settle_seconds: float = SETTLE_SECONDS,
        wait: Wait | None = None,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._folder = log_folder
        self._store, self._cursors = stores
        self._destination = destination
        self._cursor = f"forward:{destination.name}"
        self._settle_ns = int(settle_seconds * _NS)
        self._wait = wait
        self._refused_before: set[Signal] = set()
        self._failures = 0
        self._is_refused = False
        self._metrics = metrics
        self._passes = Passes(
            "forwarding failed; it goes on where it was",
            "memtrace.forward.failures",
            metrics,
            pause_seconds=_AFTER_FAILURE_SECONDS,
        )
        self._outgoing = Outgoing(
            stores.facts, reader, encodings=destination.encodings, values=values, metrics=metrics
        )

    @property
    def is_held_up(self) -> bool:
        """The last request did not go through and is tried again."""
        return self._is_refused or self._passes.is_failing

    def run_once(self, stop: threading.Event | None = None) -> Progress:
        """Send on what is durable and settled, until the end, a refusal that may pass, or
        ``stop``.
        """
        sent = 0
        projected = self._store.cursor()
        position = self._cursors.cursor(self._cursor)
        durable_end = read_durable_end(self._folder) or position
        for entry in read(self._folder, position):
            if stop is not None and stop.is_set():
                return Progress(sent)
            if entry.next > projected:
                projected = self._store.cursor()
                if entry.next > projected and not self._has_waited(entry):
                    return Progress(sent, unsettled=True)
            delivery = self._forward(entry)
            if delivery is not None and delivery.outcome == "retry":
                return Progress(sent, retry=delivery)
            position = entry.next
            self._cursors.set_cursor(self._cursor, position)
            sent += 1
        if durable_end > position:
            self._cursors.set_cursor(self._cursor, durable_end)  # only damage was left
        return Progress(sent)

    def run(self, stop: threading.Event) -> None:
        """Follow the log until ``stop``, retrying with back-off what may pass later."""
        self._passes.run(lambda: self._follow(stop), stop)

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

    def _has_waited(self, entry: Entry) -> bool:
        return time.time_ns() - entry.record.time_ns >= self._settle_ns

    def _forward(self, entry: Entry) -> Delivery | None:
        """None: nothing of the record was to be sent."""
        signal = entry.record.signal
        if signal == "control":
            return None
        payload = self._prepare(entry)
        if payload is None:
            return None
        delivery = self._destination.send(signal, payload.body, payload.encoding)
        self._metrics.add("memtrace.forward.requests", 1, signal=signal, outcome=delivery.outcome)
        if delivery.outcome == "refused":
            self._metrics.add("memtrace.forward.rejected", delivery.rejected, signal=signal)
            self._report_refusal(signal, entry.position, delivery)
        return delivery

    def _report_refusal(self, signal: Signal, position: LogPosition, delivery: Delivery) -> None:
        """Loudly once per signal: a destination that takes no logs would say so every time."""
        level = logging.DEBUG if signal in self._refused_before else logging.WARNING
        self._refused_before.add(signal)
        name, where = self._destination.name, tuple(position)
        logger.log(level, "%s refused %s at %s: %s", name, signal, where, delivery.message)

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
