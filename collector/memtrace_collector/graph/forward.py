"""What lies downstream: everything that was made, chosen or answered from an occurrence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph import deciding, resolution
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import DELIVERED, Occurrence, Use, UseKey
from memtrace_otel import semconv, variables

_MAX_DELIVERIES = 16
"""A value passes through at most so many readers between its producer and its user."""


@dataclass(slots=True)
class Downstream:
    """``occurrences``: each derived reference with the operation that made it, start included.
    ``before``: of each derived one that from which it was first reached. ``status``: how surely,
    at the least certain step."""

    operations: dict[OperationKey, Operation] = field(default_factory=dict)
    occurrences: dict[UseKey, Occurrence] = field(default_factory=dict)
    before: dict[UseKey, UseKey] = field(default_factory=dict)
    status: str = resolution.COMPLETE
    truncated: bool = False

    @property
    def refs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.ref for item in self.occurrences.values()))


class Origin(NamedTuple):
    """What a use goes back to, deliverers and final producers alike, and how surely."""

    operations: list[OperationKey]
    status: str


class _Met(NamedTuple):
    """An operation that used what was found: ``refs`` with the occurrence that each goes back to,
    and how surely."""

    user: Operation
    refs: dict[str, UseKey]
    statuses: set[str]


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
        found.occurrences[occurrence_key(item)] = item
        found.operations[item.operation.key] = item.operation
    while frontier:
        users = _users(lookups, frontier, graph_ids)
        frontier = []
        for user, refs, statuses in users:
            found.operations[user.key] = user
            found.status = resolution.worst((found.status, *statuses))
            for item, origin in (*_made_from(user, refs), *_chosen(lookups, user, refs)):
                found.operations[item.operation.key] = item.operation
                key = occurrence_key(item)
                if key not in found.occurrences:
                    found.occurrences[key] = item
                    found.before[key] = origin
                    frontier.append(item)
        if len(found.operations) > max_operations:
            found.truncated = True
            break
    return found


def origins(lookups: Lookups, uses: Iterable[Use]) -> dict[UseKey, Origin]:
    """For each use the operations it goes back to."""
    found: dict[UseKey, Origin] = {}
    pending = [(use.key, use) for use in uses]
    for _ in range(_MAX_DELIVERIES):
        if not pending:
            break
        results = resolution.resolve(lookups, [use for _, use in pending])
        following = []
        for first, use in pending:
            result = results[use.key]
            known = found.get(first, Origin([], resolution.COMPLETE))
            keys = [occurrence.operation.key for occurrence in result.occurrences]
            status = resolution.worst((known.status, result.status))
            found[first] = Origin(known.operations + keys, status)
            if result.via == DELIVERED:
                following += [(first, Use(item.operation, item.ref)) for item in result.occurrences]
        pending = following
    return found


def occurrence_key(item: Occurrence) -> UseKey:
    """Identity of an occurrence: its operation and its reference."""
    return UseKey(item.operation.key, item.ref)


def _users(
    lookups: Lookups, frontier: Sequence[Occurrence], graph_ids: Sequence[str]
) -> list[_Met]:
    """Operations that used one of the occurrences."""
    makers: dict[str, dict[OperationKey, UseKey]] = defaultdict(dict)
    for item in frontier:
        makers[variables.record_of(item.ref)].setdefault(item.operation.key, occurrence_key(item))
    uses: dict[UseKey, Use] = {}
    for graph_id in graph_ids:
        for record, users in lookups.record_users(graph_id, makers).items():
            for user in users:
                for ref in sorted(_used(user)):
                    if variables.record_of(ref) == record and user.key not in makers[record]:
                        use = Use(user, ref)
                        uses[use.key] = use
    traced = origins(lookups, uses.values())
    found: dict[OperationKey, _Met] = {}
    for key, use in uses.items():
        made, origin = makers[variables.record_of(use.ref)], traced[key]
        maker = next((each for each in origin.operations if each in made), None)
        if maker is not None:
            met = found.setdefault(key.user, _Met(use.user, {}, set()))
            met.refs[use.ref] = made[maker]
            met.statuses.add(origin.status)
    return list(found.values())


def _used(operation: Operation) -> set[str]:
    decided = {decision.fact for decision in operation.decisions if decision.fact}
    return {*operation.inputs, *operation.delivered, *decided}


def _made_from(user: Operation, refs: Mapping[str, UseKey]) -> list[tuple[Occurrence, UseKey]]:
    """What it made from these references, each with where that goes back to."""
    first = next(iter(refs.values()))
    covered = {edge.output for edge in user.edges}
    made = {
        edge.output: refs[edge.input]
        for edge in user.edges
        if edge.input in refs and edge.relation != semconv.RELATION_RELATED_TO
    }
    return [
        (Occurrence(ref, user), made.get(ref, first))
        for ref in user.outputs
        if ref in made or ref not in covered
    ]


def _chosen(
    lookups: Lookups, decider: Operation, refs: Mapping[str, UseKey]
) -> list[tuple[Occurrence, UseKey]]:
    """What was written because of a decision about these references."""
    if not decider.decisions:
        return []
    tree = lookups.tree(decider.trace_id)
    return [
        (Occurrence(ref, write), refs[based_on[0]])
        for write in tree.writes_for(decider)
        for choice in deciding.choices(write, tree)
        if choice.operation.key == decider.key
        and (based_on := [each for each in choice.refs if each in refs])
        for ref in write.outputs
    ]
