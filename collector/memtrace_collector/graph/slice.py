"""The smallest part of the graphs that says the same about one failure."""

from __future__ import annotations

from typing import NamedTuple

from memtrace_collector.graph.case import Case
from memtrace_collector.graph.closure import processes_of
from memtrace_collector.graph.facts import OperationKey, Sequence
from memtrace_collector.graph.reader import GraphReader


class Slice(NamedTuple):
    """``gapless``: processes of whose numbers nothing is missing. Outside their whole run the
    numbers of such a process would say that something was lost.
    """

    operations: frozenset[OperationKey]
    gapless: frozenset[str]


def slice_of(reader: GraphReader, case: Case) -> Slice:
    """The case's operations, and those that show its losses."""
    keys = {*case.operations, case.answer.key, *_behind_gaps(reader, case)}
    lossy = {loss.process for loss in case.closure.losses}
    return Slice(frozenset(keys), processes_of(case.operations.values()) - lossy)


def _behind_gaps(reader: GraphReader, case: Case) -> set[OperationKey]:
    """The first operation after each loss: without it nobody sees that one was lost."""
    numbers = {Sequence(loss.process, loss.last + 1) for loss in case.closure.losses}
    graph_ids = sorted(case.readable_graphs) if numbers else ()
    return {
        item.key
        for graph_id in graph_ids
        for item in reader.all_operations(graph_id)
        if item.sequence in numbers
    }
