"""Which references an operation names, and in which part. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv, variables

_STORED = frozenset((semconv.KIND_MEMORY, semconv.KIND_DOCUMENT))
_MEETS = frozenset((semconv.STEP_RETRIEVE, semconv.STEP_RERANK, semconv.STEP_ASSEMBLE))
_NO_ANCESTRY = frozenset((semconv.RELATION_RELATED_TO,))


def used_by(operation: Operation) -> set[str]:
    """Everything it read, was shown, delivered, dropped, superseded or decided about."""
    named = {
        *operation.inputs,
        *operation.shown,
        *operation.delivered,
        *operation.supersedes,
        *(item.ref for item in operation.dropped),
    }
    for decision in operation.decisions:
        named.update(ref for ref in (decision.fact, decision.target) if ref)
    return named


def acted_on(operation: Operation) -> set[str]:
    """Of :func:`used_by` what it made or changed something from, or decided about. A read, a
    prompt or a plain answer merely meets what it uses."""
    if operation.step in _MEETS or (
        operation.step == semconv.STEP_ANSWER and not _saves(operation)
    ):
        return set()
    named = {*operation.inputs, *operation.supersedes}
    for decision in operation.decisions:
        named.update(ref for ref in (decision.fact, decision.target) if ref)
    return named


def _saves(answer: Operation) -> bool:
    """Does it call a tool with something to be kept?"""
    return any(ref.startswith(f"{semconv.KIND_FACT}:") for ref in answer.outputs)


def named_by(operation: Operation) -> set[str]:
    """:func:`used_by` and the outputs."""
    return used_by(operation) | set(operation.outputs)


def records_of(refs: Iterable[str]) -> set[str]:
    """The records (``kind:id``) of which these are versions."""
    return {variables.record_of(ref) for ref in refs}


def writes_record(operation: Operation) -> bool:
    """Does it make a version of a stored record current?"""
    return any(ref.partition(":")[0] in _STORED for ref in operation.outputs)


def written_records(write: Operation) -> set[str]:
    """The records (``kind:id``) of which it made or replaced a version."""
    return records_of((*write.outputs, *write.supersedes))


def ancestry_inputs(operation: Operation, wanted: str | None) -> tuple[str, ...]:
    """The references from which ``operation`` made (or with which it delivered) ``wanted``.

    ``None`` wants everything it did. With ``edges``, only the inputs of the wanted output;
    a reader uses what it delivers; what was merely shown or superseded is never used.
    """
    if wanted is None:
        return _unique((*operation.inputs, *operation.delivered))
    if wanted in operation.outputs:
        if not operation.edges:
            return operation.inputs or operation.delivered
        made_from = [
            edge.input
            for edge in operation.edges
            if edge.output == wanted and edge.relation not in _NO_ANCESTRY
        ]
        if made_from:
            return _unique(made_from)
        if any(edge.relation not in _NO_ANCESTRY for edge in operation.edges):
            # the sender lists what made what: this output was made from nothing it read
            covered = {edge.input for edge in operation.edges}
            return tuple(ref for ref in operation.inputs if ref not in covered)
        return operation.inputs or operation.delivered
    if wanted in operation.delivered:
        return _unique((*operation.inputs, wanted))
    same_record = [ref for ref in operation.delivered if same_record_as(ref, wanted)]
    return _unique((*operation.inputs, *same_record))


def same_record_as(one: str, other: str) -> bool:
    """Are these versions of one record?"""
    return variables.record_of(one) == variables.record_of(other)


def _unique(refs: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(refs))
