"""From a flag to the answer it means."""

from __future__ import annotations

from collections.abc import Iterable

from memtrace_collector.graph.facts import Flag, Operation
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.trace_tree import TraceTree
from memtrace_otel import semconv


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


def _below(operations: list[Operation], span_id: str) -> Operation | None:
    exact = next((item for item in operations if item.span_id == span_id), None)
    if exact is not None and _is_answer(exact):
        return exact
    tree = TraceTree(operations)
    below = [item for item in operations if span_id in tree.chain(item.span_id)]
    # below spans that are no memory operations the tree is unknown: the whole trace is meant
    return _latest(below) or (_latest(operations) if exact is None else None)


def _latest(operations: Iterable[Operation]) -> Operation | None:
    answers = [item for item in operations if _is_answer(item)]
    return max(answers, key=lambda item: (item.end_ns, item.span_id), default=None)


def _is_answer(operation: Operation) -> bool:
    """A call that ended in tool calls made no ``ans:`` and is no answer."""
    return operation.step == semconv.STEP_ANSWER and any(
        ref.startswith(f"{semconv.KIND_ANSWER}:") for ref in operation.outputs
    )
