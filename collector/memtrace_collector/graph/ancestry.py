"""Ancestry of an answer: the closure over used -> deliverer or producer, and written record ->
the decision that chose it. What was merely shown is no ancestor.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph import deciding, resolution
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.references import ancestry_inputs, writes_record
from memtrace_collector.graph.resolution import DELIVERED, INCOMPLETE, Use

MAX_OPERATIONS = 20_000
_AT_ONCE = 1_024
"""Operations that are gone back from with one set of reads."""
_LEAST_AT_ONCE = 64
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
    key: OperationKey
    operation: Operation
    refs: tuple[str, ...]


def ancestry(lookups: Lookups, answer: Operation, max_operations: int = MAX_OPERATIONS) -> Ancestry:
    """Walk back from ``answer``, breadth first."""
    walk = _Walk(lookups, max_operations)
    walk.start(answer)
    while walk.pending:
        walk.advance()
        if walk.is_too_long:
            walk.found.truncated = True
            walk.statuses.add(INCOMPLETE)
            break
    return walk.ended()


@dataclass(slots=True)
class _Walk:
    """``pending``: operations that were reached, with the references to go on from."""

    lookups: Lookups
    max_operations: int
    found: Ancestry = field(default_factory=Ancestry)
    pending: list[_Step] = field(default_factory=list)
    statuses: set[str] = field(default_factory=set)
    _parents: dict[OperationKey, dict[OperationKey, None]] = field(default_factory=dict)
    _missing: dict[str, None] = field(default_factory=dict)
    _followed: dict[OperationKey, tuple[str, ...]] = field(default_factory=dict)
    """References of each operation from which the walk went on."""
    _reached: dict[str, set[str]] = field(default_factory=dict)
    """By graph, references that led straight to their only producer."""
    _exhausted: set[OperationKey] = field(default_factory=set)
    """Operations that made everything from the same references, which were followed."""
    _at_hand: list[_Step] = field(default_factory=list)
    """Of ``pending`` what is gone on from now, with what can be added without a read."""
    _met: list[Operation] = field(default_factory=list)
    """Operations that were just reached for something they made or delivered."""
    _decided: set[OperationKey] = field(default_factory=set)

    @property
    def is_too_long(self) -> bool:
        return len(self.found.operations) > self.max_operations

    def start(self, answer: Operation) -> None:
        self._add(answer.key, answer)
        self._follow(answer.key, answer, ancestry_inputs(answer, None))

    def advance(self) -> None:
        """Go one step back from the operations reached first."""
        count = self._fitting()
        self._at_hand, self.pending = self.pending[:count], self.pending[count:]
        self.lookups.read_traces([step.operation for step in self._at_hand])
        self._read_producers(self._at_hand)
        left = [use for step in self._at_hand for use in self._go_straight(step)]
        self._at_hand = self.pending
        if left:
            self._resolve(left)
        self._add_deciders()

    def ended(self) -> Ancestry:
        self.found.parents = {key: tuple(items) for key, items in self._parents.items()}
        self.found.status = resolution.worst(self.statuses)
        self.found.missing = tuple(self._missing)
        return self.found

    def _fitting(self) -> int:
        """How many steps may be gone at once without finding far more than is wanted."""
        room = max(self.max_operations - len(self.found.operations), _LEAST_AT_ONCE)
        references = itertools.accumulate(len(step.refs) for step in self.pending[:_AT_ONCE])
        return next((n for n, sum_ in enumerate(references, 1) if sum_ >= room), _AT_ONCE)

    def _read_producers(self, steps: Sequence[_Step]) -> None:
        wanted: dict[str, list[str]] = {}
        for _, operation, refs in steps:
            wanted.setdefault(operation.graph_id, []).extend(refs)
        for graph_id, names in wanted.items():
            self.lookups.read_producers(graph_id, names)

    def _go_straight(self, step: _Step) -> list[Use]:
        """Follow the references whose only producer no rule could gainsay; the others are left."""
        key, user, refs = step
        graph_id = user.graph_id
        only = self.lookups.only_producers(graph_id)
        makers = [maker for maker in map(only.get, refs) if maker is not None]
        parents = dict.fromkeys(makers)
        left: list[Use] = []
        is_plain = len(makers) == len(refs) and key not in parents and not user.sources
        if not (is_plain and self.lookups.is_alone(user.trace_id)):
            uses = [Use(user, ref) for ref in refs]
            left = [
                use for use in uses if not resolution.is_plain(self.lookups, use, only.get(use.ref))
            ]
            others = {use.ref for use in left}
            refs = tuple(ref for ref in refs if ref not in others)
            makers = [only[ref] for ref in refs]
            parents = dict.fromkeys(makers)
        if key in self._parents:
            self._parents[key].update(parents)
        elif parents:
            self._parents[key] = parents
        if set(parents).difference(self._exhausted):
            self._reach_each(self._reached.setdefault(graph_id, set()), zip(refs, makers))
        return left

    def _reach_each(self, reached: set[str], made: Iterable[tuple[str, OperationKey]]) -> None:
        for ref, maker in made:
            if ref not in reached and maker not in self._exhausted:
                reached.add(ref)
                self._reach(maker, self.lookups.known(maker), ref)

    def _resolve(self, uses: list[Use]) -> None:
        for key, result in resolution.resolve(self.lookups, uses).items():
            self.statuses.add(result.status)
            if result.via == resolution.MISSING:
                self._missing[key.ref] = None
            for ref, operation in result.occurrences:
                self._parents.setdefault(key.user, {})[operation.key] = None
                self._reach(operation.key, operation, ref, delivered=result.via == DELIVERED)

    def _reach(
        self, key: OperationKey, operation: Operation, ref: str, *, delivered: bool = False
    ) -> None:
        refs = ancestry_inputs(operation, ref)
        if delivered and ref not in refs:
            refs = (*refs, ref)
        elif not (delivered or operation.edges):
            self._exhausted.add(key)
        self._follow(key, operation, refs)
        self._add(key, operation)
        if key not in self._decided:
            self._decided.add(key)
            self._met.append(operation)

    def _follow(self, key: OperationKey, operation: Operation, refs: tuple[str, ...]) -> None:
        known = self._followed.get(key)
        if known is refs:
            return
        fresh = refs if known is None else _without(refs, known)
        if fresh:
            self._followed[key] = fresh if known is None else (*known, *fresh)
            now = self.lookups.is_whole(operation.graph_id) and not self.is_too_long
            (self._at_hand if now else self.pending).append(_Step(key, operation, fresh))

    def _add(self, key: OperationKey, operation: Operation) -> None:
        if key not in self.found.operations:
            self.found.operations[key] = operation
            self.statuses.add(_own_status(operation))

    def _add_deciders(self) -> None:
        met, self._met = self._met, []
        self.lookups.read_traces(met)
        for operation in met:
            if self.lookups.is_alone(operation.trace_id) or not writes_record(operation):
                continue
            key = operation.key
            for choice in deciding.choices(operation, self.lookups.tree(operation.trace_id)):
                decider = choice.operation.key
                self._parents.setdefault(key, {})[decider] = None
                self._follow(decider, choice.operation, choice.refs)
                self._add(decider, choice.operation)


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


def _without(refs: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    known = set(others)
    return tuple(ref for ref in refs if ref not in known)


def _own_status(operation: Operation) -> str:
    shortened = operation.truncated and operation.truncated.keys() - _HARMLESS_CUTS
    return INCOMPLETE if shortened else resolution.COMPLETE
