"""Where the rules would ask: texts that leave it open, or fail on their wording alone. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memtrace_collector.attribution.carrying.judgements import CARRIES, Doubt
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.texts import dates, text
from memtrace_otel import semconv

_KINDS = (
    semconv.KIND_MESSAGE,
    semconv.KIND_DOCUMENT,
    semconv.KIND_FACT,
    semconv.KIND_MEMORY,
)

_SOURCES = 3

if TYPE_CHECKING:
    from memtrace_collector.attribution.carrying.carriers import Sought


def judged(sought: Sought, content: str, ref: str, found: bool | None) -> bool | None:
    """What the rules read in a text, or a judgement where its wording leaves it open.

    Absence from a value that was cut proves nothing, whoever reads it.
    """
    judgements = sought.view.judgements
    if found:
        judgements.certain(sought.item, ref)
        return True
    if sought.by_descent or sought.other_owner(content, ref):
        return found
    if kind(ref) == semconv.KIND_CONTEXT and _quotes_what_was_judged(sought, content):
        return True
    if not _is_for_asking(sought, content, ref, found):
        return found
    answer = judgements.judge(_doubt(sought, content, ref, found))
    return found if answer is None or (sought.view.is_cut(ref) and not answer) else answer


def _quotes_what_was_judged(sought: Sought, prompt: str) -> bool:
    """Whether a prompt has the text of a read value that carries the item by a judgement."""
    view = sought.view
    return not sought.item.temporal and any(
        (said := view.text(ref))
        and said in prompt
        and sought.holds(ref)
        and not sought.stated(said, ref)
        and ref not in sought.sources
        for ref in dict.fromkeys((*view.delivered, *view.shown))
    )


def _is_for_asking(sought: Sought, content: str, ref: str, found: bool | None) -> bool:
    """Whether only the wording keeps the rules from an answer: an open text, or one that is
    about the need and has neither a number nor a date that speaks against it. A clock that is
    off is nothing that a reader could put right; what should be in no text is not asked for."""
    if sought.need.kind == "unanswerable" or not sought.item.text:
        return False
    if found is None:
        return not sought.item.temporal
    if kind(ref) not in _KINDS or not sought.about(content):
        return False
    if sought.item.temporal:
        return not any(dates.phrases(part, None) for part in sought.topical(content))
    return not text.numbers(sought.item.tokens - text.content_tokens(content))


def _is_near(sought: Sought, ref: str) -> bool:
    view = sought.view
    return ref in sought.descent or ref in view.candidates or ref in view.shown


def _doubt(sought: Sought, content: str, ref: str, found: bool | None) -> Doubt:
    moment = sought.view.moment(ref)
    return Doubt(
        kind=CARRIES,
        need=sought.need,
        item=sought.item,
        ref=ref,
        content=content,
        subject=sought.need.question | sought.keys | sought.item.tokens,
        leaning=found,
        said_on=moment.day.isoformat() if moment is not None else "",
        is_upstream_known=bool(sought.sources),
        sources=tuple(filter(None, map(sought.view.text, sought.sources[:_SOURCES]))),
        is_near=_is_near(sought, ref),
    )
