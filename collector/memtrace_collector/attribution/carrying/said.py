"""What was said before an answer, and of that the evidence that was named. Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying.once import once
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.graph.references import named_by
from memtrace_otel import semconv, variables

SOURCE_KINDS = (semconv.KIND_MESSAGE, semconv.KIND_DOCUMENT)


def evidence_refs(view: View) -> tuple[str, ...]:
    """The evidence as known here: exact references, else every version of the same record."""
    known = set(view.case.texts)
    if not known.issuperset(view.case.evidence):
        known.update(ref for op in view.case.operations.values() for ref in named_by(op))
    found: dict[str, None] = {}
    for ref in view.case.evidence:
        if ref in known:
            found[ref] = None
            continue
        record = variables.record_of(ref)
        found.update(
            dict.fromkeys(sorted(other for other in known if variables.record_of(other) == record))
        )
    return tuple(found)


def known_before(view: View, ref: str) -> bool:
    """Whether a value was there before the answer, as far as its producers say."""
    makers = view.producers(ref)
    return not makers or any(view.before(op) for op in makers)


@once
def said_before(view: View) -> tuple[str, ...]:
    """Messages and documents that entered before the answer, the query apart."""
    question = view.question
    asked = {view.query, *(ref for ref, said in view.case.texts.items() if said == question)}
    refs = [
        ref
        for op in view.case.operations.values()
        if view.before(op) and view.readable(op)
        for ref in (*op.outputs, *op.inputs)
        if kind(ref) in SOURCE_KINDS and ref not in asked
    ]
    return tuple(dict.fromkeys(refs))
