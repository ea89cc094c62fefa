"""References in the ancestries of flagged answers that nobody was seen to produce, and how long
their producers took to arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from memtrace_collector.telemetry.metrics import Metrics

MAX_REFERENCES = 10_000
"""Beyond so many the cases looked at longest ago are forgotten."""
_NS = 1_000_000_000


class Unseen:
    """What the last looks at cases missed.

    Args:
        metrics: told how long a reference waited that is missed no more.
        clock_ns: nanoseconds since the Unix epoch.
    """

    def __init__(
        self, metrics: Metrics, clock_ns: Callable[[], int], limit: int = MAX_REFERENCES
    ) -> None:
        self._metrics = metrics
        self._clock_ns = clock_ns
        self._limit = limit
        self._lock = threading.Lock()
        self._cases: dict[str, dict[str, int]] = {}
        """By case, those looked at last at the end: references, and since when each is missed."""
        self._size = 0

    def looked(self, case_id: str, missing: Iterable[str]) -> None:
        """The ancestry of this case's answer was read, and these are missing."""
        now = self._clock_ns()
        with self._lock:
            before = self._cases.pop(case_id, {})
            missed = {ref: before.get(ref, now) for ref in missing}
            if missed:
                self._cases[case_id] = missed
            self._size += len(missed) - len(before)
            while self._size > self._limit:
                self._size -= len(self._cases.pop(next(iter(self._cases))))
        for ref, since_ns in before.items():
            if ref not in missed:
                self._metrics.record("memtrace.references.wait", max(0, now - since_ns) / _NS)

    def count(self) -> int:
        """Different references that are missing."""
        with self._lock:
            return len({ref for missed in self._cases.values() for ref in missed})
