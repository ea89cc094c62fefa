"""What lies downstream: everything that was made, chosen or answered from an occurrence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memtrace_collector.graph import deciding, resolution
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import DELIVERED, Occurrence, Use, UseKey
from memtrace_otel import semconv, variables

_MAX_DELIVERIES = 16
"""A value passes through at most so many readers between its producer and its user."""


@dataclass(slots=True)
class Downstream:
    """``occurrences``: each derived reference with the operation that made it, start included."""

    operations: dict[OperationKey, Operation] = field(default_factory=dict)
    occurrences: dict[UseKey, Occurrence] = field(default_factory=dict)
    truncated: bool = False

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.ref for item in self.occurrences.values()))


def downstream(
    lookups: Lookups,
    start: Iterable[Occurrence],
    graph_ids: Sequence[str],
    max_operations: int,
) -> Downstream:
    """Walk forward, level by level, through the graphs named.

    A text that several operations produced is followed only from the occurrence at hand:
    each use is resolved, as in an ancestry.
    """
    found = Downstream()
    frontier = list(start)
    for item in frontier:
        found.occurrences[_key(item)] = item
        found.operations[item.operation.key] = item.operation
    while frontier:
        users = _users(lookups, frontier, graph_ids)
        frontier = []
        for user, refs in users:
            found.operations[user.key] = user
            made = [Occurrence(ref, user) for ref in _made_from(user, refs)]
            made += _chosen(lookups, user, refs)
            for item in made:
                found.operations[item.operation.key] = item.operation
                if _key(item) not in found.occurrences:
                    found.occurrences[_key(item)] = item
                    frontier.append(item)
        if len(found.operations) > max_operations:
            found.truncated = True
            break
    return found


def origins(lookups: Lookups, uses: Iterable[Use]) -> dict[UseKey, list[OperationKey]]:
    """For each use the operations it goes back to, deliverers and final producers alike."""
    found: dict[UseKey, list[OperationKey]] = {}
    pending = [(use.key, use) for use in uses]
    for _ in range(_MAX_DELIVERIES):
        if not pending:
            break
        results = resolution.resolve(lookups, [use for _, use in pending])
        following = []
        for first, use in pending:
            result = results[use.key]
            for occurrence in result.occurrences:
                found.setdefault(first, []).append(occurrence.operation.key)
                if result.via == DELIVERED:
                    following.append((first, Use(occurrence.operation, occurrence.ref)))
        pending = following
    return found


def _users(
    lookups: Lookups, frontier: Sequence[Occurrence], graph_ids: Sequence[str]
) -> list[tuple[Operation, set[str]]]:
    """Operations that used one of the occurrences, with the references they used."""
    makers: dict[str, set[OperationKey]] = defaultdict(set)
    for item in frontier:
        makers[variables.record_of(item.ref)].add(item.operation.key)
    uses: dict[UseKey, Use] = {}
    for graph_id in graph_ids:
        for record, users in lookups.record_users(graph_id, makers).items():
            for user in users:
                for ref in _used(user):
                    if variables.record_of(ref) == record and user.key not in makers[record]:
                        use = Use(user, ref)
                        uses[use.key] = use
    traced = origins(lookups, uses.values())
    found: dict[OperationKey, tuple[Operation, set[str]]] = {}
    for key, use in uses.items():
        if makers[variables.record_of(use.ref)].intersection(traced.get(key, ())):
            found.setdefault(key.user, (use.user, set()))[1].add(use.ref)
    return list(found.values())


def _used(operation: Operation) -> set[str]:
    decided = {decision.fact for decision in operation.decisions if decision.fact}
    return {*operation.inputs, *operation.delivered, *decided}


def _made_from(user: Operation, refs: set[str]) -> list[str]:
    if not user.edges:
        return list(user.outputs)
    covered = {edge.output for edge in user.edges}
    made = {
        edge.output
        for edge in user.edges
        if edge.input in refs and edge.relation != semconv.RELATION_RELATED_TO
    }
    return [ref for ref in user.outputs if ref in made or ref not in covered]


def _chosen(lookups: Lookups, decider: Operation, refs: set[str]) -> list[Occurrence]:
    if not decider.decisions:
        return []
    tree = lookups.tree(decider.trace_id)
    return [
        Occurrence(ref, write)
        for write in tree.writes_for(decider)
        for choice in deciding.choices(write, tree)
        if choice.operation.key == decider.key and refs.intersection(choice.refs)
        for ref in write.outputs
    ]


def _key(item: Occurrence) -> UseKey:
    return UseKey(item.operation.key, item.ref)
