"""Rows of the hop *sanity*: is there a failure at all? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.judgements import ANSWERS, Doubt
from memtrace_collector.attribution.carrying.likely import likely_evidence
from memtrace_collector.attribution.carrying.needs import Item, Need, answered, reply_content
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.said import evidence_refs, said_before
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, abstain, claim
from memtrace_collector.attribution.texts import dates, text
from memtrace_collector.attribution.texts.quantities import durations
from memtrace_collector.attribution.texts.wording import SURELY_COPIED, exchanges
from memtrace_otel import semconv

REPLY, REFERENCE = "reply", "reference"
BUILT = 0.5
"""Share of a reply's words in one line of its prompt that shows it was made from that."""
_COPULA = re.compile(r"\b(?:is|was|are|were)\b|:", re.IGNORECASE)
_SUBJECT = 5
"""Words of a subject that says nothing by itself."""
_FALLIBLE_SOURCES = frozenset({"dataset", "evaluator"})


def failed_call(view: View, need: Need) -> Finding | None:
    """The model's call for this answer failed: what was said instead is no answer of memory's."""
    if view.reply is not None and need.items and answered(need, view.reply, view.asked_on):
        return None
    calls = [op for op in view.turn if op.step == semconv.STEP_ANSWER] + [view.answer]
    calls.sort(key=lambda op: (op.start_ns, op.key))
    failed = next((op for op in reversed(calls) if op.error_type), None)
    if failed is None or any(
        op.start_ns > failed.start_ns and not op.error_type and op.key != view.answer.key
        for op in calls
    ):
        return None
    content = text.content_tokens(view.reply or "")
    shown = [view.text(ref) or "" for ref in (*view.contexts, *view.shown)]
    lines = [line for said in shown for line in said.splitlines()]
    if content and any(text.coverage(content, [line]) > BUILT for line in lines):
        return None  # the call broke off in the middle of an answer
    return Finding(
        error_type="unrelated",
        basis=(STRUCTURE,),
        claims=(claim(f"the answer's own call failed: {failed.error_type}", failed),),
    )


def bad_judge(view: View, need: Need) -> Finding | None:
    """The answer carries the need. A reply that may do so ends in an abstention."""
    reply = view.reply
    if reply is None or need.kind == "unknown":
        return None
    if _exchanged(view, need, reply) in (REPLY, REFERENCE):
        return None
    right = answered(need, reply, view.asked_on)
    if right is None:
        right = judged_answer(view, need)
    if right is not False and _lacks_a_part(view, need, reply):
        return None
    if right is False:
        return None
    says = claim("the reply says what was expected", view.answer, view.reply_ref)
    if right is None:
        return abstain(
            claims=[claim("the reply may already be right", view.answer, view.reply_ref)]
        )
    judges = [
        op
        for op in view.readers(view.reply_ref or "")
        if op.step == semconv.STEP_JUDGE and not op.composite
    ]
    return Finding(
        error_type="bad_judge",
        decisive=tuple(op.key for op in judges[:1]),
        last_right=view.reply_ref if judges else None,
        basis=(TEXT,),
        weight=1.2,
        claims=(
            says,
            *(claim("scored the right reply as wrong", op, view.reply_ref) for op in judges[:1]),
        ),
    )


def _lacks_a_part(view: View, need: Need, reply: str) -> bool:
    """Whether several messages of the evidence say a part each, and the reply nothing of one."""
    if need.kind in ("temporal", "inference", "unanswerable") or not view.case.evidence_given:
        return False
    known = [text.content_tokens(view.text(ref) or "") for ref in evidence_refs(view)]
    needed = frozenset().union(*(item.tokens for item in need.items))
    own = [
        (tokens & needed).difference(*(other for other in known if other is not tokens))
        for tokens in known
    ]
    parts = [part for part in own if part]
    said = text.content_tokens(reply)
    return len(parts) > 1 and any(part.isdisjoint(said) for part in parts)


def _exchanged(view: View, need: Need, reply: str) -> str | None:
    """Who is wrong when a reply repeats the expected answer with other words in one place: the
    reply or the reference; ``None``: no such reply, or it cannot be told."""
    if need.kind in ("temporal", "unanswerable", "unknown"):
        return None
    found = exchanges(need.expected, reply)
    evidence = _words_of(view, _told(view, need))
    known = evidence or _words_of(view, (*view.contexts, *view.shown, *view.delivered))
    for each in found:
        expected, instead = bool(each.expected & known), bool(each.said & known)
        if expected and not instead:
            return REPLY
        if instead and not expected and evidence and not _said_elsewhere(view, each.expected):
            return REFERENCE
    return REPLY if any(each.shared >= SURELY_COPIED for each in found) else None


def _said_elsewhere(view: View, tokens: frozenset[str]) -> bool:
    """Whether a message besides those that were searched out says it: they may not be the last."""
    return not view.case.evidence_given and bool(tokens & _words_of(view, said_before(view)))


def _told(view: View, need: Need) -> list[str]:
    """The messages that say what was needed: named, or trusted to."""
    refs = (
        evidence_refs(view)
        if view.case.evidence_given
        else [ref for item in need.items for ref in likely_evidence(view, item)]
    )
    return [ref for ref in refs if kind(ref) == semconv.KIND_MESSAGE]


def _words_of(view: View, refs: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(text.content_tokens(view.text(ref) or "") for ref in refs))


def judged_answer(view: View, need: Need) -> bool | None:
    """Whether the reply gives what was expected, as far as somebody could be asked."""
    reply, ref = view.reply, view.reply_ref
    if not view.judgements.is_open or reply is None or ref is None or not need.expected:
        return None
    tokens = frozenset[str]().union(*(item.tokens for item in need.items))
    return view.judgements.judge(
        Doubt(
            kind=ANSWERS,
            need=need,
            item=Item(need.expected, tokens),
            ref=ref,
            content=reply,
            subject=tokens | need.question,
            said_on=view.asked_on.isoformat(),
            is_near=True,
        )
    )


def bad_reference(sought: Sought) -> Finding | None:
    """A data set's or evaluator's evidence answers otherwise than its expected answer."""
    view, need = sought.view, sought.need
    reply = view.reply
    if (
        view.case.flag.source not in _FALLIBLE_SOURCES
        or not (view.case.evidence_given or sought.sources)
        or sought.by_descent
        or reply is None
        or text.declines(reply)
    ):
        return None
    if not need.question:
        # whether the evidence answers another question than was asked cannot be told
        return None if sought.stated_in_evidence else abstain("no_content")
    refs = [ref for ref in sought.sources if view.text(ref) is not None]
    contradicted = _exchanged(view, need, reply) == REFERENCE or (
        view.case.evidence_given
        and not sought.stated_in_evidence
        and _supports(sought, refs, reply)
    )
    if not refs or not contradicted:
        return None
    return Finding(
        error_type="bad_reference",
        basis=(TEXT,),
        window=None
        if view.case.evidence_given
        else view.window(0, view.answer.start_ns, view.case.operations.values()),
        claims=tuple(
            claim("the evidence says what the reply says, not what was expected", None, ref)
            for ref in refs[:2]
        ),
    )


def _supports(sought: Sought, refs: list[str], reply: str) -> bool:
    """Whether the evidence says what the reply says, or the length of time that it gives, and
    not what was expected."""
    view = sought.view
    evidence = [view.text(ref) or "" for ref in refs]
    wanted = [interval for item in sought.need.items for interval in item.intervals]
    if wanted:
        said = [r for phrase in dates.phrases(reply, view.asked_on) for r in phrase.readings]
        known = [
            reading
            for ref, each in zip(refs, evidence)
            if (moment := view.moment(ref)) is not None and not moment.assumed
            for phrase in dates.phrases(each, moment.day)
            for reading in phrase.readings
        ]
        return dates.matches(said, known) and not dates.matches(wanted, known)
    expected = text.content_tokens(need_text := sought.need.expected) - sought.need.question
    share = text.coverage(expected or text.content_tokens(need_text), evidence)
    lasting = frozenset[int]().union(*map(durations, evidence))
    if (given := durations(reply)) and (expected_length := durations(sought.need.expected)):
        return given <= lasting and expected_length.isdisjoint(lasting)
    content = reply_content(sought.need, _predicate(reply))
    return bool(content) and text.coverage(content, evidence) == 1.0 and share < 0.5


def _predicate(reply: str) -> str:
    """What a short sentence says of its subject: "Rome" in "The answer is Rome"."""
    split = _COPULA.split(reply, maxsplit=1)
    lead_is_bare = not text.proper_names(f"x {split[0]}") and not re.search(r"\d", split[0])
    short = len(split) > 1 and len(text.words(split[0])) <= _SUBJECT
    return split[-1] if short and lead_is_bare else reply
