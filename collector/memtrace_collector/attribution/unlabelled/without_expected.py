"""Findings for a flag that does not say what was right: a thumbs-down, a failed evaluation. Pure.

First what structure shows of the turn, then where the reply's own words come from, then what
became of the values that bear on the question; where none of it tells, an abstention.
"""

from __future__ import annotations

from typing import NamedTuple

from memtrace_collector.attribution.carrying.bearing import Bearing
from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.needs import Item, Need, reply_content
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, abstain, claim
from memtrace_collector.attribution.rules.not_deleted import says_forget, still_remembered
from memtrace_collector.attribution.texts import text
from memtrace_collector.attribution.unlabelled.derived import (
    Statement,
    has_texts,
    sought_for,
    statements,
)
from memtrace_collector.attribution.unlabelled.lost_values import (
    following,
    lost_in_life,
    not_extracted,
    not_found,
)
from memtrace_collector.attribution.unlabelled.origin import Origin, origin, standing_in
from memtrace_collector.attribution.unlabelled.structure_only import structural_fault
from memtrace_collector.attribution.unlabelled.turn_faults import turn_faults
from memtrace_otel import semconv

SHOWN = 0.5
"""How well the prompt must fit a question for a reply that declines to be wrong."""
BARELY = 0.3
"""How well the best value may fit for nothing to have been said about the question."""
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
    """What the path is drawn for, and the finding."""

    sought: Sought
    finding: Finding


def read(view: View, need: Need) -> Reading:
    """What the graph says should have been known, or why that cannot be told."""
    if not has_texts(view):
        return Reading(_nothing(view, need), structural_fault(view) or abstain("no_content"))
    if not need.question:
        return Reading(_nothing(view, need), abstain("no_content"))
    bearing = Bearing(view, need.question)
    told = statements(view, need)
    finding = _judge(view, need, bearing, told)
    return Reading(_sought(view, need, finding, told), finding)


def by_structure(view: View, need: Need) -> Finding | None:
    """What the turn and the lives of values show when no message could be trusted to say what was
    expected."""
    if not has_texts(view) or not need.question:
        return None
    expected = frozenset[str]().union(*(item.tokens for item in need.items))
    bearing = Bearing(view, need.question | expected)
    found = next(turn_faults(view, bearing), None)
    return found or lost_in_life(view, need, bearing) or not_found(view, bearing)


def _judge(view: View, need: Need, bearing: Bearing, told: list[Statement]) -> Finding:
    """The first that holds: a fault of the turn, of the reply, of a value's life, of the search."""
    found = next(turn_faults(view, bearing), None)
    reply = view.reply
    if found is not None or reply is None:
        return found or abstain("no_content")
    declined = text.declines(reply)
    content = frozenset() if declined else reply_content(need, reply)
    if not declined:
        if not content:
            return abstain(claims=[claim("says nothing of its own", view.answer)])
        found = (
            _remembered(view, need, bearing)
            or _from_nowhere(view, bearing, content)
            or _author(view, content)
        )
    found = found or lost_in_life(view, need, bearing) or not_found(view, bearing)
    if found is not None:
        return found
    if declined:
        return not_extracted(view, bearing) or _declined(view, bearing)
    return _supported_or_open(view, content, told)


def _sought(view: View, need: Need, finding: Finding, told: list[Statement]) -> Sought:
    """What the path is drawn for: the value that was lost, else what memory was told last."""
    right = finding.last_right
    if right is not None and (said := view.text(right)):
        return following(view, need, right, text.content_tokens(said))
    return sought_for(view, need, told) if told else _nothing(view, need)


def _declined(view: View, bearing: Bearing) -> Finding:
    """A reply that declines, of which nothing that bears on the question was lost on the way."""
    if any(view.text(ref) is None for ref in (*view.shown, *view.delivered)):
        return abstain("no_content")
    if bearing.in_context >= SHOWN:
        return Finding(
            error_type="wrong_abstention",
            decisive=(view.answer.key,),
            basis=(TEXT,),
            weight=0.6,
            claims=(claim("had what bears on the question in its prompt, declined", view.answer),),
        )
    best = bearing.best([ref for ref in bearing.values if not text.asks(bearing.values[ref])])
    if best is not None and best[0] >= BARELY:
        return abstain(claims=[claim("bears on the question, as others do", None, best[1])])
    return _rightly_declined(view)


def _supported_or_open(view: View, content: frozenset[str], told: list[Statement]) -> Finding:
    """A reply that stands in the prompt: right, when what memory was told last says it too."""
    if told and _supported(content, told[:1]):
        return _right(view, told[0])
    return abstain(claims=[claim("stands in the prompt", view.answer, view.reply_ref)])


def _remembered(view: View, need: Need, bearing: Bearing) -> Finding | None:
    """Somebody asked to forget what the question is about, and it is still in the prompt."""
    kept = bearing.best([ref for ref in view.shown if kind(ref) == semconv.KIND_MEMORY])
    if kept is None or kept[0] < BARELY:
        return None
    for op in reversed(view.operations):
        if op.step not in (semconv.STEP_DECIDE, semconv.STEP_EXTRACT) or not view.before(op):
            continue
        for ref in op.inputs:
            said = view.text(ref)
            if said and says_forget(said) and bearing.of(said) >= SHOWN:
                return still_remembered(_nothing(view, need), op, ref, kept[1])
    return None


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


def _author(view: View, content: frozenset[str]) -> Finding | None:
    """Whoever wrote the reply's words into memory although he read none of them."""
    for ref in standing_in(view, content):
        found = origin(view, ref, content)
        if found is None:
            continue
        if found.author.step == semconv.STEP_ANSWER and kind(found.ref) != semconv.KIND_FACT:
            return _wrote(found, "invented")
        error_type = _AUTHORS.get(found.author.step)
        read = (*found.sources, *found.author.shown)
        if error_type is None or text.coverage(content, [view.text(r) or "" for r in read]):
            continue
        if error_type == "distortion" and not _on_the_same_subject(view, found, content):
            error_type = "invented"
        return _wrote(found, error_type)
    return None


def _on_the_same_subject(view: View, found: Origin, content: frozenset[str]) -> bool:
    subject = text.content_tokens(view.text(found.ref) or "") - content
    texts = [view.text(ref) or "" for ref in found.sources]
    return bool(subject) and text.coverage(subject, texts) >= SAME_SUBJECT


def _wrote(found: Origin, error_type: str) -> Finding:
    right = next(iter(found.sources), None) if error_type != "invented" else None
    return Finding(
        error_type=error_type,
        decisive=(found.author.key,),
        last_right=right,
        first_wrong=found.ref,
        basis=(STRUCTURE, TEXT),
        claims=(
            claim("wrote what the reply says, of which it read nothing", found.author, found.ref),
        ),
    )


def _from_nowhere(view: View, bearing: Bearing, content: frozenset[str]) -> Finding | None:
    """None of the reply's words stands in the prompt or in what was found."""
    known = [view.text(ref) for ref in (*view.contexts, *view.shown, *view.delivered)]
    if None in known or text.coverage(content, [each for each in known if each]):
        return None
    return Finding(
        error_type="ignored_context" if bearing.in_context >= SHOWN else "hallucinated",
        decisive=(view.answer.key,),
        first_wrong=view.reply_ref,
        basis=(TEXT,),
        weight=0.9,
        claims=(claim("asserts what stands nowhere", view.answer, view.reply_ref),),
    )
