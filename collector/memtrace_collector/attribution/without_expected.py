"""Findings for a flag that does not say what was right: a thumbs-down, a failed evaluation. Pure.

First, where the reply's own words come from; then, whether what memory was told supports the
reply; what then remains is followed through the table like an expected answer.
"""

from __future__ import annotations

from typing import NamedTuple

from memtrace_collector.attribution import text
from memtrace_collector.attribution.carriers import Sought
from memtrace_collector.attribution.derived import Statement, has_texts, sought_for, statements
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, abstain, claim
from memtrace_collector.attribution.first_stored import aspect
from memtrace_collector.attribution.needs import Item, Need, reply_content
from memtrace_collector.attribution.origin import Origin, origin, standing_in
from memtrace_collector.attribution.refs import kind
from memtrace_collector.attribution.structure_only import structural_fault
from memtrace_collector.attribution.view import View
from memtrace_otel import semconv

SUPPORTS = 0.75
"""Share of the reply's words in a statement that makes the statement support the reply."""
SAME_SUBJECT = 0.5
_AUTHORS = {
    semconv.STEP_DECIDE: "merged_wrong",
    semconv.STEP_UPDATE: "merged_wrong",
    semconv.STEP_CONSOLIDATE: "merged_wrong",
    semconv.STEP_EXTRACT: "distortion",
    semconv.STEP_CREATE: "distortion",
    semconv.STEP_ADD: "distortion",
    semconv.STEP_ANSWER: "distortion",
}


class Reading(NamedTuple):
    """What is sought, and the finding where there is one before the table is walked."""

    sought: Sought
    finding: Finding | None = None


def read(view: View, need: Need) -> Reading:
    """What the graph says should have been known, or why that cannot be told."""
    if not has_texts(view):
        return Reading(_nothing(view, need), structural_fault(view) or abstain("no_content"))
    bearing = statements(view, need) if need.question else []
    sought = sought_for(view, need, bearing) if bearing else _nothing(view, need)
    reply = view.reply
    if reply is None or not need.question:
        return Reading(sought, None if reply is None and bearing else abstain("no_content"))
    if text.declines(reply):
        return Reading(sought) if bearing else Reading(sought, _rightly_declined(view))
    content = reply_content(need, reply)
    if not content:
        return Reading(sought, abstain(claims=[claim("says nothing of its own", view.answer)]))
    if bearing and _supported(content, [bearing[0]]):
        return Reading(sought, _right(view, bearing[0]))
    wrote = _author(view, sought, content)
    if wrote is not None:
        return Reading(sought, wrote)
    if not bearing:
        return Reading(sought, _from_nowhere(view, content))
    return Reading(sought)


def _nothing(view: View, need: Need) -> Sought:
    blank = Need("unanswerable", need.asked, "", need.question)
    return Sought(view, blank, Item("", frozenset({"\0"})), (), frozenset())


def _supported(content: frozenset[str], said: list[Statement]) -> bool:
    return text.coverage(content, [each.sentence for each in said]) >= SUPPORTS


def _right(view: View, statement: Statement) -> Finding:
    return Finding(
        error_type="bad_judge",
        basis=(TEXT,),
        weight=0.7,
        claims=(
            claim("says what the reply says", None, statement.ref),
            claim("the reply says what memory was told", view.answer, view.reply_ref),
        ),
    )


def _rightly_declined(view: View) -> Finding:
    if any(view.text(ref) is None for ref in (*view.shown, *view.delivered)):
        return abstain("no_content")
    return Finding(
        error_type="never_told",
        basis=(TEXT,),
        weight=0.7,
        claims=(claim("nothing that was said bears on the question", view.answer),),
        window=view.window(0, view.answer.start_ns, view.case.operations.values()),
    )


def _author(view: View, sought: Sought, content: frozenset[str]) -> Finding | None:
    """Whoever wrote the reply's words into memory although nothing he read says them."""
    for ref in standing_in(view, content):
        found = origin(view, ref, content)
        if found is None or found.author is None:
            continue
        if found.author.step == semconv.STEP_ANSWER and kind(found.ref) != semconv.KIND_FACT:
            return _wrote(view, sought, found, "invented")
        error_type = _AUTHORS.get(found.author.step)
        if error_type is None:
            continue
        if error_type == "distortion" and not _on_the_same_subject(view, found, content):
            error_type = "invented"
        return _wrote(view, sought, found, error_type)
    return None


def _on_the_same_subject(view: View, found: Origin, content: frozenset[str]) -> bool:
    subject = text.content_tokens(view.text(found.ref) or "") - content
    texts = [view.text(ref) or "" for ref in found.sources]
    return bool(subject) and text.coverage(subject, texts) >= SAME_SUBJECT


def _wrote(view: View, sought: Sought, found: Origin, error_type: str) -> Finding:
    author = found.author
    assert author is not None  # noqa: S101  (callers look first)
    right = next(iter(found.sources), None) if error_type != "invented" else None
    return Finding(
        error_type=error_type,
        decisive=(author.key,),
        last_right=right,
        first_wrong=found.ref,
        aspect=aspect(sought, right, view.text(found.ref) or "") if right else None,
        basis=(STRUCTURE, TEXT),
        claims=(claim("wrote what the reply says, which nothing it read says", author, found.ref),),
    )


def _from_nowhere(view: View, content: frozenset[str]) -> Finding:
    known = [view.text(ref) for ref in (*view.contexts, *view.shown, *view.delivered)]
    if None in known:
        return abstain("no_content")
    other = next(iter(standing_in(view, content)), None)
    return Finding(
        error_type="distracted" if other else "hallucinated",
        decisive=(view.answer.key,),
        first_wrong=view.reply_ref,
        basis=(TEXT,),
        weight=0.8,
        claims=(
            claim(
                "is what the reply says, and does not bear on the question"
                if other
                else "asserts what stands nowhere",
                view.answer,
                other or view.reply_ref,
            ),
        ),
    )
