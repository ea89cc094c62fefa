"""One operation, and everything it names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph import content
from memtrace_collector.graph.facts import Operation, OperationKey, Value
from memtrace_collector.graph.questions.answered import Found, Paged, Texts
from memtrace_collector.graph.questions.arguments import Span
from memtrace_collector.graph.questions.shapes import (
    Json,
    is_span,
    operation_json,
    parse_answer,
    span_json,
    time_json,
)
from memtrace_collector.graph.reader import GraphReader


class OneOperation(Paged, frozen=True, kw_only=True):
    """One operation in full: what it read, was shown, produced, replaced, returned and cut,
    with the texts as far as they were captured; its decisions, limits, parent and error."""

    span: Span


class Named(NamedTuple):
    """A reference that an operation names, and as what."""

    ref: str
    part: str
    """input, shown, output, delivered, dropped or superseded."""
    rank: int | None = None
    score: float | None = None
    reason: str = ""


def operation(reader: GraphReader, span: str, texts: Texts) -> Found[Named]:
    """The operation at ``TRACE:SPAN`` with every reference it names.

    Raises:
        WrongUseError: it is not written like that.
        NotFoundError: no memory operation is known there.
    """
    if not is_span(span):
        raise WrongUseError(f"{span!r} is not TRACE:SPAN: 32 hex digits, a colon, 16 hex digits")
    key = parse_answer(span)
    found = operation_at(reader, key)
    if found is None:
        others = [str(item.key) for item in reader.trace_operations(key.trace_id)][:5]
        hint = f"; operations of that trace: {', '.join(others)}" if others else ""
        raise NotFoundError(f"no memory operation is known at {span}{hint}")
    return Found(
        _head(found),
        "references",
        list(_named(found)),
        lambda run: _json(reader, found, run, texts),
    )


def operation_at(reader: GraphReader, key: OperationKey) -> Operation | None:
    """The operation with exactly this key, of whatever graph."""
    return next((o for o in reader.trace_operations(key.trace_id) if o.key == key), None)


def values_of(
    reader: GraphReader, graph_ids: Sequence[str], refs: Collection[str]
) -> dict[str, Value]:
    """Captured values of references, the first graph that holds one."""
    found: dict[str, Value] = {}
    for graph_id in dict.fromkeys(graph_ids):
        missing = [ref for ref in refs if ref not in found]
        found.update(reader.values(graph_id, missing) if missing else {})
    return found


def ask_operation(reader: GraphReader, given: OneOperation, texts: Texts) -> Found[Named]:
    return operation(reader, given.span, texts)


def _head(item: Operation) -> Json:
    return {
        **operation_json(item),
        "ended": time_json(item.end_ns),
        "parent": span_json(OperationKey(item.trace_id, item.parent_span_id))
        if item.parent_span_id
        else None,
        "composite": item.composite,
        "system": item.system,
        "capture": item.capture,
        "error": item.error_type,
        "conversation": item.conversation_id,
        "reads_graphs": list(item.reads),
        "limits": dict(item.limits),
        "score_kind": item.score_kind,
        "decisions": [entry._asdict() for entry in item.decisions],
        "edges": [entry._asdict() for entry in item.edges],
        "times": dict(item.times),
        "truncated": dict(item.truncated),
        "cut": list(item.cut),
    }


def _named(item: Operation) -> Iterator[Named]:
    yield from (Named(ref, "input") for ref in item.inputs)
    yield from (Named(ref, "output") for ref in item.outputs)
    scores = (*item.scores, *([None] * len(item.delivered)))
    for rank, (ref, score) in enumerate(zip(item.delivered, scores), 1):
        yield Named(ref, "delivered", rank, score)
    for cut in item.dropped:
        yield Named(cut.ref, "dropped", cut.rank, cut.score, cut.reason)
    yield from (Named(ref, "superseded") for ref in item.supersedes)
    yield from (Named(ref, "shown") for ref in item.shown)


def _json(reader: GraphReader, item: Operation, run: Sequence[Named], texts: Texts) -> list[Json]:
    found = values_of(reader, (item.graph_id, *item.reads), {named.ref for named in run})
    return [
        {
            **named._asdict(),
            "role": item.roles.get(named.ref, ""),
            "text": texts.one(content.plain_text(found[named.ref])) if named.ref in found else None,
        }
        for named in run
    ]
