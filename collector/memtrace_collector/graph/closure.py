"""What is known about completeness: numbers that were never seen, and how far each run goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from memtrace_collector.graph.case import Closure, Loss
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.reader import GraphReader, SequenceNumber

_FAREWELL = 2**63


def processes_of(operations: Iterable[Operation]) -> frozenset[str]:
    """The processes that numbered these operations."""
    return frozenset(item.sequence.process for item in operations if item.sequence)


def closure(reader: GraphReader, processes: Collection[str]) -> Closure:
    """Losses and last numbers of these processes. Sequences span graphs, so this does too."""
    losses: list[Loss] = []
    last_seen: dict[str, int] = {}
    for process, numbers in reader.sequence(processes).items():
        ordered = sorted(numbers, key=lambda number: number.number)
        losses.extend(_gaps(process, ordered))
        ended = any(number.farewell for number in ordered)
        last_seen[process] = _FAREWELL if ended else ordered[-1].start_ns
    return Closure(losses=tuple(losses), last_seen_ns=last_seen)


def _gaps(process: str, numbers: list[SequenceNumber]) -> Iterable[Loss]:
    """Numbers are given when an operation starts: a missing one started between its neighbours."""
    previous, after_ns = 0, 0
    for number in numbers:
        if number.number > previous + 1:
            yield Loss(process, previous + 1, number.number - 1, after_ns, number.start_ns)
        previous, after_ns = number.number, number.start_ns
