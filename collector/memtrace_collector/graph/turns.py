"""The turn of an answer: the operations that belong to this one reply."""

from __future__ import annotations

from collections.abc import Container

from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.lookups import Lookups
from memtrace_otel import semconv, variables

WINDOW_NS = 600_000_000_000
"""How long before an answer a read of the same query or record may belong to its turn."""
_READS = frozenset((semconv.STEP_RETRIEVE, semconv.STEP_RERANK, semconv.STEP_REWRITE))
_JOINING_KINDS = frozenset((semconv.KIND_QUERY, semconv.KIND_MEMORY, semconv.KIND_DOCUMENT))


def turn(
    lookups: Lookups, answer: Operation, ancestors: Container[OperationKey] = ()
) -> dict[OperationKey, Operation]:
    """Its trace (of a trace with answers to several questions, what came after the previous
    one, and ancestors); whoever delivered what it names in ``from``; and reads of the same query or
    record in the same graphs within :data:`WINDOW_NS` before it (a plain script has no
    enclosing trace). A read of another question belongs to another turn, whatever it found."""
    begins_ns = _previous_answer_end(lookups, answer)
    found = {
        item.key: item
        for item in lookups.tree(answer.trace_id).operations
        if item.end_ns > begins_ns or item.key in ancestors
    }
    found[answer.key] = answer
    graph_ids = dict.fromkeys(
        graph_id for item in found.values() for graph_id in (item.graph_id, *item.reads)
    )
    for item in list(found.values()):
        for key in item.sources.values():
            named = lookups.operation(key, (item.graph_id, *item.reads))
            if named is not None and named.step in _READS:
                found[named.key] = named
    records = {
        variables.record_of(ref) for ref in answer.inputs if ref.partition(":")[0] in _JOINING_KINDS
    }
    questions = _questions(answer)
    for graph_id in graph_ids:
        for users in lookups.record_users(graph_id, records).values():
            for user in users:
                if user.step not in _READS or not _shortly_before(user, answer):
                    continue
                asked = _questions(user)
                if asked and questions and not asked & questions:
                    continue
                if not _is_inside_add(lookups, user):
                    found[user.key] = user
    return found


def _previous_answer_end(lookups: Lookups, answer: Operation) -> int:
    """When the answer before this one, to another question of the same trace, ended; 0: none."""
    questions = _questions(answer)
    return max(
        (
            other.end_ns
            for other in lookups.tree(answer.trace_id).operations
            if other.step == semconv.STEP_ANSWER
            and other.end_ns <= answer.start_ns
            and any(ref.startswith(f"{semconv.KIND_ANSWER}:") for ref in other.outputs)
            and questions
            and _asks_otherwise(other, questions)
        ),
        default=0,
    )


def _asks_otherwise(answer: Operation, questions: set[str]) -> bool:
    asked = _questions(answer)
    return bool(asked) and not asked & questions


def _is_inside_add(lookups: Lookups, read: Operation) -> bool:
    """The look for similar memories while something is stored answers nobody."""
    tree = lookups.tree(read.trace_id)
    return any(item.step == semconv.STEP_ADD for item in tree.enclosing(read))


def _questions(operation: Operation) -> set[str]:
    return {
        variables.record_of(ref)
        for ref in (*operation.inputs, *operation.outputs)
        if ref.startswith(f"{semconv.KIND_QUERY}:")
    }


def _shortly_before(operation: Operation, answer: Operation) -> bool:
    return answer.start_ns - WINDOW_NS <= operation.start_ns <= answer.end_ns
