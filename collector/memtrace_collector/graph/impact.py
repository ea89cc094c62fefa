"""Everything derived from something: what a correction or a deletion has to reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memtrace_collector.graph import content
from memtrace_collector.graph.case import Loss
from memtrace_collector.graph.closure import closure, processes_of
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.forward import downstream, occurrence_key
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Occurrence, UseKey
from memtrace_otel import semconv, variables

MAX_OPERATIONS = 20_000


class Impact(NamedTuple):
    """``derived``: oldest first, the start left out. ``complete``: the walk reached its end.

    ``before``: of each occurrence that from which it was first reached. ``lineage``: how surely,
    at the least certain step. ``losses``: operations of the processes met that never arrived and
    may have made more of it.
    """

    derived: tuple[Occurrence, ...]
    complete: bool
    before: Mapping[UseKey, UseKey]
    lineage: str
    losses: tuple[Loss, ...]

    @property
    def lost(self) -> int:
        """How many operations never arrived."""
        return sum(loss.last - loss.first + 1 for loss in self.losses)

    @property
    def records(self) -> list[str]:
        """The memory records (``kind:id``) derived, each once."""
        refs = (item.ref for item in self.derived if _is(item, semconv.KIND_MEMORY))
        return list(dict.fromkeys(map(variables.record_of, refs)))

    @property
    def answers(self) -> list[OperationKey]:
        """The answers given from it, each once."""
        given = (item.operation.key for item in self.derived if _is(item, semconv.KIND_ANSWER))
        return list(dict.fromkeys(given))

    def chain(self, item: Occurrence) -> list[UseKey]:
        """From the start to this occurrence: by which references, and which operations made
        them. Both ends are in it."""
        steps = [occurrence_key(item)]
        while steps[-1] in self.before:
            steps.append(self.before[steps[-1]])
        return steps[::-1]


def impact(lookups: Lookups, start: Sequence[Occurrence]) -> Impact:
    """What was made, chosen or answered from the occurrences ``start``, through all graphs."""
    graph_ids = [summary.graph_id for summary in lookups.reader.graphs()]
    found = downstream(lookups, start, graph_ids, MAX_OPERATIONS)
    started = {(item.ref, item.operation.key) for item in start}
    derived = [
        item for item in found.occurrences.values() if (item.ref, item.operation.key) not in started
    ]
    derived.sort(key=lambda item: (item.operation.start_ns, item.ref))
    return Impact(
        tuple(derived),
        not found.truncated,
        found.before,
        found.status,
        _losses(lookups, found.operations.values(), start),
    )


def occurrences_of(lookups: Lookups, name: str) -> list[Occurrence]:
    """Where a reference, or any version of a record (``kind:id``), was produced."""
    record = variables.record_of(name)
    exact = "@" in name
    return [
        Occurrence(ref, operation)
        for summary in lookups.reader.graphs()
        for operation in lookups.writers(summary.graph_id, [record]).get(record, ())
        for ref in operation.outputs
        if (ref == name if exact else variables.record_of(ref) == record)
    ]


def outputs_of(operations: Iterable[Operation]) -> list[Occurrence]:
    """Everything these operations produced."""
    return [Occurrence(ref, operation) for operation in operations for ref in operation.outputs]


def texts_of(lookups: Lookups, occurrences: Iterable[Occurrence]) -> dict[str, str]:
    """The captured texts by reference, quoted references left out."""
    by_graph: dict[str, set[str]] = defaultdict(set)
    for item in occurrences:
        by_graph[item.operation.graph_id].add(item.ref)
    return {
        ref: content.plain_text(value)
        for graph_id, refs in by_graph.items()
        for ref, value in lookups.reader.values(graph_id, refs).items()
    }


def _losses(
    lookups: Lookups, operations: Iterable[Operation], start: Sequence[Occurrence]
) -> tuple[Loss, ...]:
    """Numbers that the processes met never sent, since the first thing that is asked about."""
    began_ns = min((item.operation.start_ns for item in start), default=0)
    losses = closure(lookups.reader, processes_of(operations)).losses
    return tuple(loss for loss in losses if loss.before_ns >= began_ns)


def _is(item: Occurrence, kind: str) -> bool:
    return item.ref.startswith(f"{kind}:")
