"""Prompts and buffers: do they quote what carries an item, or only have its words? Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memtrace_collector.attribution.carrying import passages
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.texts import dates
from memtrace_otel import semconv

if TYPE_CHECKING:
    from memtrace_collector.attribution.carrying.carriers import Sought


def is_scattered(sought: Sought, content: str) -> bool:
    """Whether a prompt has the words, but nothing that it shows, or says around, the item."""
    view = sought.view
    shown = [view.text(ref) for ref in view.shown]
    if not shown or None in shown or sought.among(view.shown):
        return False
    around = passages.around(content, [*filter(None, shown), view.question or ""])
    return sought.stated(around) is not True


def quotes_a_carrier(sought: Sought, content: str, ref: str) -> bool:
    """Whether a value has verbatim what was said, or a prompt a value that carries it; with the
    day on which it was said where that matters."""
    view = sought.view
    is_prompt = kind(ref) == semconv.KIND_CONTEXT
    shown = (*view.shown, *view.delivered) if is_prompt else ()
    for source in dict.fromkeys((*sought.sources, *shown)):
        before = passages.quoted_after(content, view.text(source) or "")
        if before is None or (source not in sought.sources and not sought.holds(source)):
            continue
        if sought.need.kind != "temporal":
            return True
        moment, own = view.moment(source), view.moment(ref)
        if moment is None or moment.day in dates.days_named(before):
            return moment is not None
        if not is_prompt and own is not None and own.day == moment.day:
            return True
    return False
