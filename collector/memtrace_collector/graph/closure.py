"""What is known about completeness: numbers that were never seen, and how far each run goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from memtrace_collector.graph.case import Closure, Loss
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.reader import GraphReader, Run

_FAREWELL = 2**63


def processes_of(operations: Iterable[Operation]) -> frozenset[str]:
    """The processes that numbered these operations."""
    return frozenset(item.sequence.process for item in operations if item.sequence)


def closure(reader: GraphReader, processes: Collection[str]) -> Closure:
    """Losses and last numbers of these processes. Sequences span graphs, so this does too."""
    losses: list[Loss] = []
    last_seen: dict[str, int] = {}
    for process, runs in reader.runs(processes).items():
        losses.extend(_gaps(process, runs))
        ended = any(run.last.farewell for run in runs)
        last_seen[process] = _FAREWELL if ended else runs[-1].last.start_ns
    return Closure(losses=tuple(losses), last_seen_ns=last_seen)


def _gaps(process: str, runs: list[Run]) -> Iterable[Loss]:
    """Numbers are given when an operation starts: a missing one started between its neighbours."""
    previous, after_ns = 0, 0
    for first, last in runs:
        if first.number > previous + 1:
            yield Loss(process, previous + 1, first.number - 1, after_ns, first.start_ns)
        previous, after_ns = last.number, last.start_ns
