"""Which decision chose a write. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from memtrace_collector.graph.facts import Decision, Operation
from memtrace_collector.graph.references import writes_record, written_records
from memtrace_collector.graph.trace_tree import TraceTree
from memtrace_otel import semconv, variables

_ACTIONS = {
    semconv.STEP_CREATE: frozenset(("ADD",)),
    # a blind put executes an ADD as well
    semconv.STEP_UPDATE: frozenset(("UPDATE", "ADD")),
    semconv.STEP_DELETE: frozenset(("DELETE",)),
}
_NOOP = "NOOP"

_Match = Callable[[Operation, Operation, Decision], bool]


class Choice(NamedTuple):
    """A decision operation and the references on which it based this one choice."""

    operation: Operation
    refs: tuple[str, ...]


def choices(write: Operation, tree: TraceTree) -> list[Choice]:
    """The decision of the same trace that chose ``write``; several only when equally near."""
    earlier = [
        operation
        for operation in tree.deciders_for(write)
        if operation.key != write.key and operation.start_ns <= write.end_ns
    ]
    found = _choices(write, earlier, _is_certain)
    if not found:
        siblings = [item for item in earlier if item.parent_span_id == write.parent_span_id]
        found = _choices(write, siblings, _is_possible)
    if len(found) < 2:
        return found
    deepest = max(tree.common_depth(item.operation, write) for item in found)
    near = [item for item in found if tree.common_depth(item.operation, write) == deepest]
    latest = max(item.operation.start_ns for item in near)
    return [item for item in near if item.operation.start_ns == latest]


def executes(write: Operation, decider: Operation, decision: Decision) -> bool:
    """Does this write carry out this decision of ``decider``, as far as can be told?"""
    if not writes_record(write) or not _allows(write, decision):
        return False
    return _is_certain(write, decider, decision) or _is_possible(write, decider, decision)


def _choices(write: Operation, deciders: Iterable[Operation], matches: _Match) -> list[Choice]:
    found = []
    for decider in deciders:
        decisions = [
            item
            for item in decider.decisions
            if _allows(write, item) and matches(write, decider, item)
        ]
        if decisions:
            found.append(Choice(decider, _basis(decider, decisions)))
    return found


def _allows(write: Operation, decision: Decision) -> bool:
    allowed = _ACTIONS.get(write.step)
    return decision.action in allowed if allowed else decision.action != _NOOP


def _is_certain(write: Operation, decider: Operation, decision: Decision) -> bool:
    if decision.fact is not None and decision.fact in write.inputs:
        return True
    if decision.target is not None:
        return variables.record_of(decision.target) in written_records(write)
    return bool(set(decider.outputs) & set(write.inputs))


def _is_possible(write: Operation, decider: Operation, decision: Decision) -> bool:
    del write, decider
    return decision.fact is None and decision.target is None


def _basis(decider: Operation, decisions: Iterable[Decision]) -> tuple[str, ...]:
    facts = [item.fact for item in decisions]
    if None in facts:
        return decider.inputs
    return tuple(dict.fromkeys(fact for fact in facts if fact))
