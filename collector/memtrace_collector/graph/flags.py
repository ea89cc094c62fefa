"""From a flag to the answer it means, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import structs

from memtrace_collector.graph.facts import Flag, Operation, OperationKey
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.trace_tree import TraceTree
from memtrace_otel import semconv


class Flagged(NamedTuple):
    """An answer and what is said against it, several flags made one."""

    answer: Operation
    flag: Flag


class Meant(NamedTuple):
    """What the flags around one answer mean now."""

    flag: Flag | None
    """All that is said against it, made one; None when it is not flagged."""
    others: tuple[Operation, ...] = ()
    """Answers that came later and that flags of a whole trace or conversation mean instead."""


def flagged_answers(reader: GraphReader) -> list[Flagged]:
    """The flagged answers that have arrived, oldest first, each with its flags made one."""
    by_answer: dict[OperationKey, tuple[Operation, list[Flag]]] = {}
    for flag in reader.flags():
        answer = resolve(reader, flag)
        if answer is not None:
            by_answer.setdefault(answer.key, (answer, []))[1].append(flag)
    found = [Flagged(answer, _merged(given)) for answer, given in by_answer.values()]
    return sorted(found, key=lambda each: (each.answer.start_ns, each.answer.key))


def flag_of(reader: GraphReader, answer: Operation) -> Flag | None:
    """All that is said against one answer, made one flag; None when it is not flagged."""
    return meant(reader, answer).flag


def meant(reader: GraphReader, answer: Operation) -> Meant:
    """What the flags that name the answer, its trace, response or conversation mean now."""
    given = []
    others: dict[OperationKey, Operation] = {}
    for flag in reader.flags_at(answer.flag_targets):
        found = resolve(reader, flag)
        if found is not None and found.key == answer.key:
            given.append(flag)
        elif found is not None and not flag.span_id:
            others[found.key] = found
    return Meant(_merged(given) if given else None, tuple(others.values()))


def resolve(reader: GraphReader, flag: Flag) -> Operation | None:
    """The flagged answer; None while it has not arrived.

    A span that is no answer means the latest-ending answer below it; a trace or conversation,
    its latest-ending answer.
    """
    if flag.trace_id:
        operations = reader.trace_operations(flag.trace_id)
        return _below(operations, flag.span_id) if flag.span_id else _latest(operations)
    if flag.response_id:
        return _latest(reader.response_operations(flag.response_id))
    if flag.conversation_id:
        return _latest(reader.conversation_operations(flag.conversation_id))
    return None


def _merged(given: Sequence[Flag]) -> Flag:
    """The latest flag that says what was expected; evidence also from the others."""
    best = max(given, key=lambda flag: (flag.expected is not None, flag.at_ns, flag.origin))
    others = [flag for flag in given if flag.evidence]
    if best.evidence or not others:
        return best
    return structs.replace(best, evidence=max(others, key=lambda flag: flag.at_ns).evidence)


def _below(operations: list[Operation], span_id: str) -> Operation | None:
    exact = next((item for item in operations if item.span_id == span_id), None)
    if exact is not None and is_answer(exact):
        return exact
    tree = TraceTree(operations)
    below = [item for item in operations if span_id in tree.chain(item.span_id)]
    # below spans that are no memory operations the tree is unknown: the whole trace is meant
    return _latest(below) or (_latest(operations) if exact is None else None)


def _latest(operations: Iterable[Operation]) -> Operation | None:
    answers = [item for item in operations if is_answer(item)]
    return max(answers, key=lambda item: (item.end_ns, item.span_id), default=None)


def is_answer(operation: Operation) -> bool:
    """Is it a reply? A call that ended in tool calls made no ``ans:`` and is no answer."""
    return operation.step == semconv.STEP_ANSWER and any(
        ref.startswith(f"{semconv.KIND_ANSWER}:") for ref in operation.outputs
    )
