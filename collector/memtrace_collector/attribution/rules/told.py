"""Rows of the hop *told*: did the owner's memory ever hear it? Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.needs import DOUBTFUL
from memtrace_collector.attribution.carrying.once import once
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.said import evidence_refs, said_before
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, Window, abstain, claim
from memtrace_collector.attribution.texts import text
from memtrace_otel import semconv, variables

_SEARCHED = 0.7
"""What is left of the score when words were searched for: it may have been said in others."""
_ENTRY = frozenset({semconv.STEP_INGEST, semconv.STEP_ADD})


@once
def _stored(sought: Sought) -> tuple[str, ...]:
    """Everything any operation put before this answer, whatever became of it."""
    view = sought.view
    kinds = (semconv.KIND_FACT, semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)
    made = [
        ref
        for op in view.case.operations.values()
        if view.before(op) and view.readable(op)
        for ref in op.outputs
        if kind(ref) in kinds
    ]
    return tuple(dict.fromkeys([*made, *view.current_versions]))


def wrong_graph(sought: Sought) -> Finding | None:
    """A carrier exists only in a graph that no operation of this answer reads."""
    view = sought.view
    if sought.need.kind == "unanswerable":
        return None
    if sought.among([*said_before(sought.view), *_stored(sought)]) and not view.case.foreign:
        return None
    strangers = [
        op
        for op in view.case.operations.values()
        if not view.readable(op) and op.start_ns < view.answer.start_ns
    ]
    elsewhere = set(view.case.foreign) or {
        ref for op in strangers for ref in (*op.outputs, *op.inputs) if _carries_abroad(sought, ref)
    }
    said = sought.sources if view.case.foreign else said_before(view)
    here = sought.among(ref for ref in [*said, *_stored(sought)] if ref not in elsewhere)
    writers = sorted(
        (op for op in strangers if op.step in _ENTRY and elsewhere & {*op.outputs, *op.inputs}),
        key=lambda op: (op.composite, op.start_ns),
    )
    if here or not writers:
        return None
    ref = next(ref for ref in (*writers[0].outputs, *writers[0].inputs) if ref in elsewhere)
    return Finding(
        error_type="wrong_graph",
        decisive=(writers[0].key,),
        last_right=ref,
        basis=(STRUCTURE, TEXT) if view.text(ref) else (STRUCTURE,),
        claims=(
            claim(
                f"was written to {writers[0].graph_id}, which this answer never reads",
                writers[0],
                ref,
            ),
        ),
    )


def _carries_abroad(sought: Sought, ref: str) -> bool:
    content = sought.view.text(ref)
    return (
        content is not None
        and kind(ref) == semconv.KIND_MESSAGE
        and bool(sought.stated(content, ref))
    )


def lost_at_ingest(sought: Sought) -> Finding | None:
    """What entered had it; what the ingest made of it does not."""
    view = sought.view
    if sought.by_descent:
        return None
    for op in view.operations:
        if op.step != semconv.STEP_INGEST or not view.before(op) or not op.outputs:
            continue
        right = sought.among(ref for ref in op.inputs if kind(ref) == semconv.KIND_MESSAGE)
        made = [
            ref for ref in op.outputs if kind(ref) in (semconv.KIND_DOCUMENT, semconv.KIND_MESSAGE)
        ]
        if not right or not made or sought.among(made):
            continue
        if sought.among(ref for ref in _stored(sought) if ref not in made):
            return None
        if op.truncated or sought.open_among(made):
            return abstain(*(sought.why_open(made) or (("cut",) if op.truncated else ())))
        return Finding(
            error_type="lost_at_ingest",
            decisive=(op.key,),
            last_right=right[-1],
            claims=(claim("what entered had it, what was kept of it does not", op, right[-1]),),
        )
    return None


def never_told(sought: Sought) -> Finding | None:
    """No carrier before the answer, in anything said or stored."""
    view = sought.view
    if sought.need.kind == "unanswerable" or sought.sources:
        return None
    if sought.by_descent:
        unheard = evidence_is_unseen(view) and _everything_was_seen(view)
        return _not_heard(view) if unheard else None
    said = said_before(view)
    stored = _stored(sought)
    if sought.among([*said, *stored]):
        return None
    if evidence_is_unseen(view):
        return _not_heard(view) if _everything_was_seen(view) else abstain("retention")
    unseen = [
        ref for ref in (*said, *stored) if view.text(ref) is None and not ref.endswith("@deleted")
    ]
    if unseen:
        return abstain("no_content")
    open_refs = sought.open_among([*said, *stored])
    if open_refs:
        return abstain(*sought.why_open(open_refs))
    texts = [view.text(ref) or "" for ref in (*said, *stored)]
    if (
        view.case.evidence_given
        and view.case.flag.source != "user"
        and text.coverage(sought.item.tokens, texts) >= DOUBTFUL
    ):
        return abstain()
    return _never_said(view, len(said), 1.0 if view.case.evidence_given else _SEARCHED)


def evidence_is_unseen(view: View) -> bool:
    """Whether messages are named that say it, and none of them was ever seen to enter."""
    return view.case.evidence_given and not evidence_refs(view)


def part_not_heard(view: View) -> Finding | None:
    """Some of the messages that are named as saying it entered, and others never did."""
    heard = {variables.record_of(ref) for ref in evidence_refs(view)}
    named = {variables.record_of(ref) for ref in view.case.evidence}
    if not view.case.evidence_given or not heard or named <= heard:
        return None
    return _not_heard(view) if _everything_was_seen(view) else None


def _not_heard(view: View) -> Finding:
    return Finding(
        error_type="never_told",
        basis=(STRUCTURE,),
        claims=(claim("the messages that say it never entered", view.answer),),
        window=_until_now(view),
    )


def _never_said(view: View, heard: int, weight: float) -> Finding:
    return Finding(
        error_type="never_told",
        basis=(TEXT,),
        weight=weight,
        claims=(claim(f"none of {heard} messages before the answer says it", view.answer),),
        window=_until_now(view),
    )


def _until_now(view: View) -> Window:
    return view.window(0, view.answer.start_ns, view.case.operations.values())


def _everything_was_seen(view: View) -> bool:
    """Whether every operation of the processes concerned arrived, from the first number on."""
    processes = frozenset(op.sequence.process for op in view.writers() if op.sequence)
    return bool(processes) and (
        view.case.closure.absence(0, view.answer.start_ns, processes) == "proven"
    )
