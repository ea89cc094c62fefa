"""The memory invariants, watched all the time: graph by graph, when a graph has changed.

A check reads the whole graph, so that a large and busy one is checked less often.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from memtrace_collector.graph import invariants
from memtrace_collector.graph.reader import GraphReader, GraphSummary
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

INTERVAL_SECONDS = 2.0
REST_FACTOR = 20.0
"""A graph is left alone for so many times as long as its last check took."""
PACE_FACTOR = 15.0
"""After each check the watch as a whole rests for so many times as long as it took: it shares its
interpreter with the receiver, whose acknowledgements must not wait for it."""
MAX_GRAPHS = 100_000
"""Beyond so many graphs the others are not watched, and counted as such."""


Report: TypeAlias = Callable[[Sequence[invariants.Finding]], None]


class _Checked(NamedTuple):
    summary: GraphSummary
    found: Counter[str]
    due: float

    def is_due(self, summary: GraphSummary, now: float) -> bool:
        return self.summary != summary and now >= self.due


def _tell_nobody(_: Sequence[invariants.Finding]) -> None:
    """Findings are only counted."""


class InvariantWatch:
    """Keeps the number of findings by kind, over all graphs, up to date.

    ``report`` is told everything that was found in a graph, at each check of it.
    """

    def __init__(
        self,
        reader: GraphReader,
        metrics: Metrics = NULL_METRICS,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
        report: Report = _tell_nobody,
    ) -> None:
        self._reader = reader
        self._report = report
        self._metrics = metrics
        self._clock = clock
        self._wait = wait
        self._checked: dict[str, _Checked] = {}
        self._counts: Counter[str] = Counter(dict.fromkeys(invariants.KINDS, 0))
        self._old: frozenset[str] | None = None
        """Graphs that were there at the first look: what their first check finds is no news, or
        each start would tell all of it again."""

    def counts(self) -> Counter[str]:
        """Findings by kind as of the last look; a kind without any counts 0."""
        return self._counts

    def run(self, stop: threading.Event) -> None:
        """Look at what has changed, until ``stop``."""

        passes = Passes(
            "the memory invariants could not be checked",
            "memtrace.invariants.failures",
            self._metrics,
            pause_seconds=INTERVAL_SECONDS,
        )
        passes.run(lambda: self.turn(stop), stop)

    def turn(self, stop: threading.Event) -> float:
        """One look; the seconds to pause after it."""
        self.look(stop)
        return INTERVAL_SECONDS

    def look(self, stop: threading.Event) -> None:
        """Check the graphs that have changed since the last look."""
        summaries = self._reader.graphs()
        if self._old is None:
            self._old = frozenset(summary.graph_id for summary in summaries)
        for summary in summaries[:MAX_GRAPHS]:
            if stop.is_set():
                return
            known = self._checked.get(summary.graph_id)
            began = self._clock()
            if known is None or known.is_due(summary, began):
                checked = self._checked[summary.graph_id] = self._check(summary)
                if known is not None or summary.graph_id not in self._old:
                    self._tell_new(checked.found - (known.found if known else Counter()))
                self._wait(stop, PACE_FACTOR * (self._clock() - began))
        self._metrics.add("memtrace.invariants.unwatched", max(0, len(summaries) - MAX_GRAPHS))
        present = {summary.graph_id for summary in summaries}
        self._checked = {name: each for name, each in self._checked.items() if name in present}
        counts: Counter[str] = Counter(dict.fromkeys(invariants.KINDS, 0))
        for checked in self._checked.values():
            counts.update(checked.found)
        self._counts = counts

    def _tell_new(self, found: Counter[str]) -> None:
        for kind, number in found.items():
            self._metrics.add("memtrace.invariants.found", number, kind=kind)

    def _check(self, summary: GraphSummary) -> _Checked:
        began = self._clock()
        found = invariants.check(self._reader, summary.graph_id)
        self._report(found)
        ended = self._clock()
        due = ended + REST_FACTOR * (ended - began)
        return _Checked(summary, Counter(item.kind for item in found), due)
