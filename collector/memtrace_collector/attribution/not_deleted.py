"""The row *not_deleted*: asked to forget, kept and used all the same. Pure."""

from __future__ import annotations

import re

from memtrace_collector.attribution import text
from memtrace_collector.attribution.carriers import Sought
from memtrace_collector.attribution.findings import Finding, claim
from memtrace_collector.attribution.needs import reply_content
from memtrace_collector.attribution.not_updated import in_context_or_delivered
from memtrace_collector.attribution.refs import kind
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv

_FORGET = re.compile(
    r"\b(?:forget|delete|remove|erase|don't (?:keep|store|remember|save))\b"
    r"|\b(?:vergiss|vergesst|vergessen|lösch|entfern|olvid|borra|elimina|oubli|supprim|efface"
    r"|dimentica|esque[cç])\w*|忘记|删除|忘れて|削除|잊어|삭제",
    re.IGNORECASE,
)


def not_deleted(sought: Sought) -> Finding | None:
    """Asked to forget; the record is still current, and the reply uses it."""
    view = sought.view
    reply = view.reply
    if sought.need.kind != "unanswerable" or reply is None or text.declines(reply):
        return None
    content = reply_content(sought.need, reply)
    used = [
        ref
        for ref in in_context_or_delivered(view)
        if kind(ref) == semconv.KIND_MEMORY
        and content
        and text.coverage(content, [view.text(ref) or ""]) == 1
    ]
    calls = [op for op in view.case.operations.values() if op.composite]
    for op in (*reversed(view.operations), *calls):
        if not view.before(op) or not used:
            continue
        asked = [
            ref for ref in op.inputs if _asks_to_forget(sought, view.text(ref), view.text(used[0]))
        ]
        if asked and op.step in (semconv.STEP_DECIDE, semconv.STEP_EXTRACT, semconv.STEP_ADD):
            return _forgotten_to_forget(sought, op, asked[0], used[0])
    return None


def _asks_to_forget(sought: Sought, request: str | None, record: str | None) -> bool:
    if request is None or record is None or not _FORGET.search(text.normalise(request)):
        return False
    subject = text.content_tokens(record) | sought.need.question
    return bool(text.content_tokens(request) & subject)


def _forgotten_to_forget(sought: Sought, op: Operation, request: str, record: str) -> Finding:
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
