"""What the projecting process does for its store between passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

EXPIRY_SECONDS = 600.0
TIDY_SECONDS = 0.2
_DAY_NS = 86_400 * 1_000_000_000


class KeptStore(Protocol):
    """The part of :class:`~memtrace_collector.store.base.FactStore` that is needed here."""

    def expire_values(self, before_ns: int) -> int: ...

    def tidy(self, seconds: float) -> bool: ...


class StoreUpkeep:
    """Lets values expire now and then, and tidies up when there is nothing else to do.

    Args:
        values_days: how long values are kept; 0: for ever.
        metrics: counts ``memtrace.values.expired``.
        clock_ns: nanoseconds since the Unix epoch.
        timer: seconds, monotonic.
    """

    def __init__(
        self,
        store: KeptStore,
        values_days: float = 0.0,
        *,
        metrics: Metrics = NULL_METRICS,
        clock_ns: Callable[[], int] = time.time_ns,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._kept_ns = int(values_days * _DAY_NS)
        self._metrics = metrics
        self._clock_ns = clock_ns
        self._timer = timer
        self._due = float("-inf")

    def __call__(self, idle: bool) -> bool:
        """See :data:`~memtrace_collector.processor.projector.Upkeep`."""
        if self._kept_ns and self._timer() >= self._due:
            expired = self._store.expire_values(self._clock_ns() - self._kept_ns)
            self._metrics.add("memtrace.values.expired", expired)
            self._due = self._timer() + EXPIRY_SECONDS
        return idle and self._store.tidy(TIDY_SECONDS)
