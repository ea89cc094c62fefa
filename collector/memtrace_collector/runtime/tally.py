"""Counters and histograms of a process that nobody scrapes: added up until they are taken."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping

from memtrace_collector.runtime.projection_messages import Count, Spread
from memtrace_collector.telemetry.bounds import Bounds
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.histograms import distribution, merged
from memtrace_collector.telemetry.metric import Kind
from memtrace_collector.telemetry.metrics import Distribution, Exemplar

_Key = tuple[str, tuple[tuple[str, str], ...]]


class Tally:
    """Implements :class:`~memtrace_collector.telemetry.metrics.Metrics`; exemplars stay behind.

    As large as the catalogue allows sets of attributes, however long nobody takes anything.
    """

    def __init__(self) -> None:
        self._bounds = Bounds()
        self._lock = threading.Lock()
        self._sums: defaultdict[_Key, float] = defaultdict(int)
        self._values: dict[_Key, Distribution] = {}

    def add(
        self,
        name: str,
        value: float,
        _: Exemplar | None = None,
        /,
        **attributes: str,
    ) -> None:
        """Add ``value`` to the counter ``name`` of this set of attributes."""
        key = self._key(name, "counter", attributes)
        if key is not None:
            with self._lock:
                self._sums[key] += value

    def record(
        self,
        name: str,
        value: float,
        _: Exemplar | None = None,
        /,
        **attributes: str,
    ) -> None:
        """Put one value into the histogram ``name``."""
        if name in METRICS:
            self.merge(name, distribution(METRICS[name].bounds, [value]), **attributes)

    def merge(self, name: str, values: Distribution, /, **attributes: str) -> None:
        """Put many values into the histogram ``name``."""
        key = self._key(name, "histogram", attributes)
        if key is not None:
            with self._lock:
                known = self._values.get(key)
                self._values[key] = merged(known, values) if known else values

    def take(self) -> tuple[tuple[Count, ...], tuple[Spread, ...]]:
        """What was added since this was last asked."""
        with self._lock:
            sums, self._sums = self._sums, defaultdict(int)
            values, self._values = self._values, {}
        return (
            tuple(Count(name, dict(pairs), value) for (name, pairs), value in sums.items()),
            tuple(_spread(*key, each) for key, each in values.items()),
        )

    def _key(self, name: str, kind: Kind, attributes: Mapping[str, str]) -> _Key | None:
        metric = self._bounds.metric(name, kind, attributes)
        if metric is None:
            return None
        return name, tuple(self._bounds.within(metric, attributes).items())


def _spread(name: str, pairs: tuple[tuple[str, str], ...], values: Distribution) -> Spread:
    buckets = tuple((index, count) for index, count in enumerate(values.counts) if count)
    return Spread(name, dict(pairs), buckets, values.sum, values.least, values.greatest)


def gathered(spread: Spread) -> Distribution:
    """What a message says of a histogram that the catalogue has."""
    counts = [0] * (len(METRICS[spread.name].bounds) + 1)
    for index, count in spread.buckets:
        counts[index] = count
    return Distribution(tuple(counts), spread.sum, spread.least, spread.greatest)
