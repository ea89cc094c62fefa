"""Reading back: whether what a destination took can really be seen there.

A destination may acknowledge a span and drop it: for its age, for its size, because it lost its
disk. A sample of the delivered rows is looked for, some times over some minutes. What is missing
then is sent once more; what is missing again is given up, with its reason.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.exporter.backoff import delay_seconds
from memtrace_collector.exporter.outbox import Entry, Outbox
from memtrace_collector.exporter.trace_query import Found
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

logger = logging.getLogger(__name__)

LOOKS_AFTER_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0)
"""From the delivery, or the last look, to the next: three minutes until a row is missing."""
CHECKS_PER_MINUTE = 60
AT_ONCE = 20
"""Checks that are saved up: a verdict is several rows, delivered together, and those in
old traces, which come last, are the likeliest to be dropped."""
MAX_WAITING = 100
NOT_SEEN = "not visible at its destination"
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 2.0, 60.0
_IDLE_SECONDS = 0.5
_AFTER_FAILURE_SECONDS = 5.0
_NS = 1_000_000_000


class Query(Protocol):
    """See :class:`~memtrace_collector.exporter.trace_query.TraceQuery`."""

    def spans_of(self, trace_id: str) -> Found: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class _Awaited:
    """A delivered row that is looked for."""

    outbox: Outbox
    entry_id: str
    trace_id: str
    span_ids: frozenset[str]
    was_sent_again: bool
    looks: int = 0
    unanswered: int = 0


@dataclass(slots=True)
class _Queue:
    """Rows by when they are to be looked for; ``clock`` in seconds. Thread-safe."""

    _rows: list[tuple[float, int, _Awaited]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, at: float, row: _Awaited) -> None:
        with self._lock:
            heapq.heappush(self._rows, (at, next(self._numbers), row))

    def due(self, now: float) -> _Awaited | None:
        with self._lock:
            return heapq.heappop(self._rows)[2] if self._rows and self._rows[0][0] <= now else None

    def __len__(self) -> int:
        return len(self._rows)


class ReadBack:
    """Looks for a sample of delivered rows. What is not in the sample is not looked for.

    Args:
        destination: name of the one that they were delivered to.
        query: asked for their spans; closed by :meth:`close`.
        looks_after: seconds before each look; after the last a row is missing.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        destination: str,
        query: Query,
        *,
        looks_after: Sequence[float] = LOOKS_AFTER_SECONDS,
        checks_per_minute: int = CHECKS_PER_MINUTE,
        clock: Callable[[], float] = time.monotonic,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._destination = destination
        self._query = query
        self._looks_after = looks_after
        self._checks_per_second = checks_per_minute / 60.0
        self._clock = clock
        self._metrics = metrics
        self._queue = _Queue()
        self._checks, self._checks_at = float(AT_ONCE), clock()
        self._resume_at = 0.0
        self._failures = 0
        """Looks in a row that nobody answered."""

    def offer(self, outbox: Outbox, entry: Entry) -> None:
        """A row was delivered. It is taken into the sample when there is room and time; one that
        was sent again, whenever there is room."""
        was_sent_again = entry.last_error.startswith(NOT_SEEN)
        if entry.signal != "traces" or len(self._queue) >= MAX_WAITING:
            return
        if not was_sent_again and not self._may_check():
            return
        wanted = _spans(entry.payload)
        if wanted is not None:
            row = _Awaited(outbox, entry.id, *wanted, was_sent_again)
            self._queue.put(self._clock() + self._looks_after[0], row)

    def run(self, stop: threading.Event) -> None:
        """Look until ``stop``."""
        passes = Passes(
            "delivered verdicts could not be read back",
            "memtrace.outbox.failures",
            self._metrics,
            pause_seconds=_AFTER_FAILURE_SECONDS,
        )
        passes.run(self.once, stop)

    def once(self) -> float:
        """One look, if any is due; seconds to pause after it."""
        now = self._clock()
        row = self._queue.due(now) if now >= self._resume_at else None
        if row is None:
            return _IDLE_SECONDS
        found = self._query.spans_of(row.trace_id)
        if found.span_ids is None:
            self._unanswered(row, found.message)
            return 0.0
        self._failures = 0
        if row.span_ids <= found.span_ids:
            self._count("visible")
            return 0.0
        row.looks += 1
        if row.looks < len(self._looks_after):
            self._queue.put(self._clock() + self._looks_after[row.looks], row)
        else:
            self._missing(row)
        return 0.0

    def close(self) -> None:
        self._query.close()

    def _may_check(self) -> bool:
        """A token bucket; only the sender's thread comes here."""
        now = self._clock()
        gained = (now - self._checks_at) * self._checks_per_second
        self._checks, self._checks_at = min(AT_ONCE, self._checks + gained), now
        if self._checks < 1:
            return False
        self._checks -= 1
        return True

    def _unanswered(self, row: _Awaited, message: str) -> None:
        """The API is left alone for a while; a row is dropped that had no answer too often."""
        if self._failures == 0:
            logger.warning("delivered verdicts cannot be read back: %s", message)
        self._failures += 1
        pause = delay_seconds(
            self._failures, first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS
        )
        self._resume_at = self._clock() + pause
        row.unanswered += 1
        if row.unanswered < len(self._looks_after):
            self._queue.put(self._resume_at, row)
        else:
            self._count("unreachable")

    def _missing(self, row: _Awaited) -> None:
        self._count("missing")
        seconds = sum(self._looks_after)
        reason = f"{NOT_SEEN} {seconds:.0f} s after it was taken, in trace {row.trace_id}"
        if not row.was_sent_again:
            row.outbox.outbox_not_seen(row.entry_id, reason, time.time_ns(), self._destination)
            return
        reason += ", also when sent again"
        if row.outbox.outbox_not_seen(row.entry_id, reason, None, self._destination):
            logger.warning("outbox %s: %s", row.entry_id, reason)
            self._metrics.add("memtrace.outbox.abandoned", 1)

    def _count(self, result: str) -> None:
        self._metrics.add("memtrace.readback", 1, result=result)


def _spans(payload: bytes) -> tuple[str, frozenset[str]] | None:
    """The trace of a row, which is about one, and its spans; None when it has none."""
    try:
        request = ExportTraceServiceRequest.FromString(payload)
    except DecodeError:
        return None
    found = [
        span
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]
    return (found[0].trace_id.hex(), frozenset(s.span_id.hex() for s in found)) if found else None
