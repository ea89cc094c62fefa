"""Counters of a process that nobody scrapes: added up until they are taken."""

from __future__ import annotations

import threading
from collections import Counter

from memtrace_collector.runtime.projection_messages import Count


class Tally:
    """Implements :class:`~memtrace_collector.telemetry.metrics.Metrics`.

    As large as there are counters and sets of attributes, however long nobody takes anything.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def add(self, name: str, value: int, **attributes: str) -> None:
        """Add ``value`` to the counter ``name`` of this set of attributes."""
        with self._lock:
            self._sums[name, tuple(sorted(attributes.items()))] += value

    def take(self) -> tuple[Count, ...]:
        """What was added since this was last asked."""
        with self._lock:
            sums, self._sums = self._sums, Counter()
        return tuple(
            Count(name, dict(attributes), value) for (name, attributes), value in sums.items()
        )
