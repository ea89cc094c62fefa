"""The memory invariants, watched all the time: graph by graph, when a graph has changed.

A check reads the whole graph, so that a large and busy one is checked less often.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from memtrace_collector.graph import invariants
from memtrace_collector.graph.reader import GraphReader, GraphSummary
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 2.0
REST_FACTOR = 20.0
"""A graph is left alone for so many times as long as its last check took."""
MAX_GRAPHS = 100_000
"""Beyond so many graphs the others are not watched, and counted as such."""


class _Checked(NamedTuple):
    summary: GraphSummary
    found: Counter[str]
    due: float

    def is_due(self, summary: GraphSummary, now: float) -> bool:
        return self.summary != summary and now >= self.due


class InvariantWatch:
    """Keeps the number of findings by kind, over all graphs, up to date."""

    def __init__(
        self,
        reader: GraphReader,
        metrics: Metrics = NULL_METRICS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._metrics = metrics
        self._clock = clock
        self._checked: dict[str, _Checked] = {}
        self._counts: Counter[str] = Counter(dict.fromkeys(invariants.KINDS, 0))

    def counts(self) -> Counter[str]:
        """Findings by kind as of the last look; a kind without any counts 0."""
        return self._counts

    def run(self, stop: threading.Event) -> None:
        """Look at what has changed, until ``stop``."""
        while not stop.is_set():
            try:
                self.look(stop)
            except Exception:
                self._metrics.add("memtrace.invariants.failures", 1)
                logger.exception("the memory invariants could not be checked")
            stop.wait(INTERVAL_SECONDS)

    def look(self, stop: threading.Event) -> None:
        """Check the graphs that have changed since the last look."""
        summaries = self._reader.graphs()
        for summary in summaries[:MAX_GRAPHS]:
            if stop.is_set():
                return
            known = self._checked.get(summary.graph_id)
            if known is None or known.is_due(summary, self._clock()):
                self._checked[summary.graph_id] = self._check(summary)
        self._metrics.add("memtrace.invariants.unwatched", max(0, len(summaries) - MAX_GRAPHS))
        counts: Counter[str] = Counter(dict.fromkeys(invariants.KINDS, 0))
        for checked in self._checked.values():
            counts.update(checked.found)
        self._counts = counts

    def _check(self, summary: GraphSummary) -> _Checked:
        began = self._clock()
        found = invariants.check(self._reader, summary.graph_id)
        ended = self._clock()
        due = ended + REST_FACTOR * (ended - began)
        return _Checked(summary, Counter(item.kind for item in found), due)
