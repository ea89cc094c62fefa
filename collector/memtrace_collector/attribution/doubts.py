"""Where the rules would ask: texts that leave it open, or fail on their wording alone. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memtrace_collector.attribution import dates, text
from memtrace_collector.attribution.judgements import CARRIES, Doubt
from memtrace_collector.attribution.refs import kind
from memtrace_otel import semconv

if TYPE_CHECKING:
    from memtrace_collector.attribution.carriers import Sought


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
    if kind(ref) == semconv.KIND_CONTEXT and _quotes_a_carrier(sought, content):
        return True
    if found is False and not _fails_on_wording(sought, content, ref):
        return False
    answer = judgements.judge(_doubt(sought, content, ref, found))
    return found if answer is None or (sought.view.is_cut(ref) and not answer) else answer


def _quotes_a_carrier(sought: Sought, prompt: str) -> bool:
    """Whether a prompt has the text of a read value that carries the item."""
    view = sought.view
    values = dict.fromkeys((*view.delivered, *view.shown))
    return any((said := view.text(ref)) and said in prompt and sought.holds(ref) for ref in values)


def _fails_on_wording(sought: Sought, content: str, ref: str) -> bool:
    """Whether a text is about the need, and neither a number nor a date speaks against it."""
    if kind(ref) == semconv.KIND_CONTEXT or not sought.about(content):
        return False
    if sought.item.temporal:
        return not any(dates.phrases(part, None) for part in sought.topical(content))
    return not text.numbers(sought.item.tokens - text.content_tokens(content))


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
    )
