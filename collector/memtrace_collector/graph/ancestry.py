"""Ancestry of an answer: the closure over used -> deliverer or producer, and written record ->
the decision that chose it. What was merely shown is no ancestor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph import deciding, resolution
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.references import ancestry_inputs, writes_record
from memtrace_collector.graph.resolution import DELIVERED, INCOMPLETE, Use, UseKey

MAX_OPERATIONS = 20_000
_HARMLESS_CUTS = frozenset(("dropped", "shown", "values"))
"""Shortened parts of a lineage that no ancestry runs over."""


@dataclass(slots=True)
class Ancestry:
    """``parents``: consumer -> producers, deliverers and deciders of what it used."""

    operations: dict[OperationKey, Operation] = field(default_factory=dict)
    parents: dict[OperationKey, tuple[OperationKey, ...]] = field(default_factory=dict)
    status: str = resolution.COMPLETE
    missing: tuple[str, ...] = ()
    """References nobody was seen to produce."""
    truncated: bool = False
    """The walk was stopped at its limit of operations."""


class _Step(NamedTuple):
    operation: Operation
    refs: tuple[str, ...]


def ancestry(lookups: Lookups, answer: Operation, max_operations: int = MAX_OPERATIONS) -> Ancestry:
    """Walk back from ``answer``, level by level."""
    found = Ancestry(operations={answer.key: answer})
    parents: dict[OperationKey, dict[OperationKey, None]] = {}
    seen: set[UseKey] = set()
    statuses = {_own_status(answer)}
    missing: dict[str, None] = {}
    frontier = [_Step(answer, ancestry_inputs(answer, None))]
    while frontier:
        uses = [Use(step.operation, ref) for step in frontier for ref in step.refs]
        fresh = {use.key: use for use in uses if use.key not in seen}
        seen.update(fresh)
        resolutions = resolution.resolve(lookups, fresh.values())
        frontier = []
        for key, result in resolutions.items():
            statuses.add(result.status)
            if result.via == resolution.MISSING:
                missing[key.ref] = None
            for step in _next_steps(result):
                parents.setdefault(key.user, {})[step.operation.key] = None
                frontier.append(step)
        frontier = _with_deciders(lookups, frontier, parents)
        for step in frontier:
            if step.operation.key not in found.operations:
                found.operations[step.operation.key] = step.operation
                statuses.add(_own_status(step.operation))
        if len(found.operations) > max_operations:
            found.truncated = True
            statuses.add(INCOMPLETE)
            break
    found.parents = {key: tuple(items) for key, items in parents.items()}
    found.status = resolution.worst(statuses)
    found.missing = tuple(missing)
    return found


def parents_of(
    lookups: Lookups, operations: Iterable[Operation]
) -> dict[OperationKey, tuple[OperationKey, ...]]:
    """One step back from each operation, for everything it did."""
    items = list(operations)
    uses = [Use(item, ref) for item in items for ref in ancestry_inputs(item, None)]
    parents: dict[OperationKey, dict[OperationKey, None]] = {item.key: {} for item in items}
    for key, result in resolution.resolve(lookups, uses).items():
        for occurrence in result.occurrences:
            parents[key.user][occurrence.operation.key] = None
    for item in items:
        for choice in deciding.choices(item, lookups.tree(item.trace_id)):
            parents[item.key][choice.operation.key] = None
    return {key: tuple(found) for key, found in parents.items() if found}


def merge_parents(
    *maps: Mapping[OperationKey, tuple[OperationKey, ...]],
) -> dict[OperationKey, tuple[OperationKey, ...]]:
    """The union of several parent maps."""
    merged: dict[OperationKey, dict[OperationKey, None]] = {}
    for parents in maps:
        for key, items in parents.items():
            merged.setdefault(key, {}).update(dict.fromkeys(items))
    return {key: tuple(items) for key, items in merged.items()}


def _next_steps(result: resolution.Resolution) -> list[_Step]:
    steps = []
    for ref, operation in result.occurrences:
        refs = ancestry_inputs(operation, ref)
        if result.via == DELIVERED and ref not in refs:
            refs = (*refs, ref)
        steps.append(_Step(operation, refs))
    return steps


def _with_deciders(
    lookups: Lookups,
    steps: list[_Step],
    parents: dict[OperationKey, dict[OperationKey, None]],
) -> list[_Step]:
    extended = list(steps)
    for operation in {step.operation.key: step.operation for step in steps}.values():
        if not writes_record(operation):
            continue
        for choice in deciding.choices(operation, lookups.tree(operation.trace_id)):
            parents.setdefault(operation.key, {})[choice.operation.key] = None
            extended.append(_Step(choice.operation, choice.refs))
    return extended


def _own_status(operation: Operation) -> str:
    shortened = set(operation.truncated) - _HARMLESS_CUTS
    return INCOMPLETE if shortened else resolution.COMPLETE
