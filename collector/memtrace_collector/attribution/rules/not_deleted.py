"""The row *not_deleted*: asked to forget, kept and used all the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memtrace_collector.attribution.carrying.carriers import ABOUT, Sought
from memtrace_collector.attribution.carrying.needs import reply_content
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.findings import Finding, claim
from memtrace_collector.attribution.rules.not_updated import in_context_or_delivered
from memtrace_collector.attribution.texts import dates, text
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv

_FORGET = re.compile(
    r"(?<!n't )(?<!never )(?<!not )"
    r"\b(?:forget|delete|remove|erase|don't (?:keep|store|remember|save))\b"
    r"|\b(?:vergiss|vergesst|vergessen|lösch|entfern|olvid|borra|elimina|oubli|supprim|efface"
    r"|dimentica|esque[cç])\w*|忘记|删除|忘れて|削除|잊어|삭제",
    re.IGNORECASE,
)

_DECIDING = frozenset({semconv.STEP_DECIDE, semconv.STEP_EXTRACT, semconv.STEP_ADD})


def not_deleted(sought: Sought) -> Finding | None:
    """Asked to forget; the record is still current, and the reply uses it."""
    view = sought.view
    reply = view.reply
    if sought.need.kind != "unanswerable" or reply is None or text.declines(reply):
        return None
    content = reply_content(sought.need, reply)
    records = [ref for ref in in_context_or_delivered(view) if kind(ref) == semconv.KIND_MEMORY]
    used = [ref for ref in records if content and _says(sought, ref, content)]
    calls = [op for op in view.case.operations.values() if op.composite]
    meant = {
        ref
        for ref in view.case.evidence
        if _FORGET.search(view.text(ref) or "")
        and any(op.step in _DECIDING and view.before(op) for op in view.readers(ref))
    }
    for op in (*reversed(view.operations), *calls):
        if op.step not in _DECIDING or not view.before(op) or not records:
            continue
        for request in filter(meant.__contains__, op.inputs) if meant else op.inputs:
            record = next(
                (
                    ref
                    for ref in used
                    if _asks_to_forget(sought, view.text(request), view.text(ref))
                ),
                _meant_by(sought, request, records),
            )
            if record:
                return still_remembered(sought, op, request, record)
    return None


def _says(sought: Sought, ref: str, content: frozenset[str]) -> bool:
    """Whether a record says what the reply does, in its words or by the time that it names."""
    view = sought.view
    said = view.text(ref) or ""
    if text.coverage(content, [said]) == 1:
        return True
    moment = view.moment(ref)
    replied = dates.readings(view.reply or "", view.asked_on)
    return bool(replied) and dates.matches(
        replied, dates.readings(said, moment.day if moment and not moment.assumed else None)
    )


def _meant_by(sought: Sought, request: str, records: Sequence[str]) -> str | None:
    """The record about the same as a request to forget which is itself the evidence, whatever
    words the reply makes of it."""
    view = sought.view
    asked = view.text(request)
    if asked is None or request not in view.case.evidence or not view.case.evidence_given:
        return None
    subject = text.content_tokens(asked)
    shares = {
        ref: len(subject & text.content_tokens(said))
        for ref in records
        if (said := view.text(ref)) and _asks_to_forget(sought, asked, said)
    }
    best = max(shares, key=lambda ref: shares[ref], default=None)
    return best if best and shares[best] >= ABOUT * len(subject & sought.need.question) else None


def says_forget(said: str) -> bool:
    """Whether a text speaks of forgetting, or of deleting something."""
    return _FORGET.search(text.normalise(said)) is not None


def _asks_to_forget(sought: Sought, request: str | None, record: str | None) -> bool:
    if request is None or record is None or not says_forget(request):
        return False
    subject = text.content_tokens(record) | sought.need.question
    return bool(text.content_tokens(request) & subject)


def still_remembered(sought: Sought, op: Operation, request: str, record: str) -> Finding:
    view = sought.view
    decide = next(
        (
            other
            for other in view.operations
            if other.step == semconv.STEP_DECIDE and view.same_call(op, other)
        ),
        None,
    )
    decisive = decide or view.enclosing(op, semconv.STEP_ADD) or op
    return Finding(
        error_type="not_deleted",
        decisive=(decisive.key,),
        last_right=request,
        first_wrong=record,
        claims=(
            claim("asked to forget it", op, request),
            claim("was still current and used", view.reads[-1] if view.reads else None, record),
        ),
        window=view.window(op.start_ns, view.read_ns, [op, *view.writers()]),
    )
