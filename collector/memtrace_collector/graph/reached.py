"""Which answers a record, or a broken invariant, reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memtrace_collector.graph import invariants
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.flags import is_answer
from memtrace_collector.graph.forward import downstream
from memtrace_collector.graph.invariants import Finding
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Occurrence
from memtrace_otel import semconv, variables

MAX_OPERATIONS = 2_000
_MAX_PROMPTS = 8
"""Prompts that are put together from one another before an answer is given."""


class AnsweredWith(NamedTuple):
    """An answer and the versions of a record that its prompt held."""

    answer: Operation
    refs: frozenset[str]


def answers_with(lookups: Lookups, record: str, met: Iterable[Operation]) -> list[AnsweredWith]:
    """The answers whose prompt held a version of ``record``, oldest first. ``met``: who met it."""
    found: dict[OperationKey, AnsweredWith] = {}
    holding = [
        AnsweredWith(item, frozenset(ref for ref in item.inputs if _is_of(record, ref)))
        for item in met
    ]
    for _ in range(_MAX_PROMPTS):
        prompts: list[AnsweredWith] = []
        for item, refs in holding:
            if not refs or item.composite:
                continue
            if is_answer(item):
                known = found.get(item.key, AnsweredWith(item, frozenset()))
                found[item.key] = AnsweredWith(item, known.refs | refs)
            elif item.step == semconv.STEP_ASSEMBLE:
                prompts.append(AnsweredWith(item, refs))
        if not prompts:
            break
        holding = _users_of(lookups, prompts)
    return sorted(found.values(), key=lambda each: (each.answer.start_ns, each.answer.key))


def _users_of(lookups: Lookups, prompts: Sequence[AnsweredWith]) -> list[AnsweredWith]:
    """Who used these prompts, with what those held."""
    held: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for item, refs in prompts:
        in_graph = held[item.graph_id]
        for prompt in item.outputs:
            in_graph[prompt] = in_graph.get(prompt, frozenset()) | refs
    using: list[AnsweredWith] = []
    for graph_id, contents in held.items():
        names = {variables.record_of(prompt) for prompt in contents}
        users = lookups.record_users(graph_id, names).values()
        for user in {item.key: item for several in users for item in several}.values():
            refs = frozenset(ref for each in user.inputs for ref in contents.get(each, ()))
            using.append(AnsweredWith(user, refs))
    return using


def _is_of(record: str, ref: str) -> bool:
    return ref.startswith(record) and variables.record_of(ref) == record


def answers_reached(lookups: Lookups, finding: Finding) -> list[Operation]:
    """The answers that used what the finding is about, oldest first.

    Those of the same trace, else the first that came later: what is derived from a wrong answer
    is that answer's fault. An empty retrieval reaches the next answer of its trace; a write that
    never happened reaches none.
    """
    tree = lookups.tree(finding.operation.trace_id)
    broke = next((o for o in tree.operations if o.key == finding.operation), None)
    if broke is None or finding.kind == invariants.LOST_WRITE:
        return []
    if finding.kind == invariants.EMPTY_RETRIEVAL:
        return _oldest(o for o in tree.operations if o.end_ns >= broke.end_ns)[:1]
    start = [Occurrence(finding.ref, broke)]
    graph_ids = dict.fromkeys((finding.graph_id, *broke.reads))
    found = _oldest(
        downstream(lookups, start, tuple(graph_ids), MAX_OPERATIONS).operations.values()
    )
    return [each for each in found if each.trace_id == broke.trace_id] or found[:1]


def _oldest(operations: Iterable[Operation]) -> list[Operation]:
    answers = (item for item in operations if is_answer(item))
    return sorted(answers, key=lambda item: (item.end_ns, item.key))
