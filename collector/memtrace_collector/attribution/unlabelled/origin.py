"""Where the words of a reply come from: back from the context to who first wrote them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from memtrace_collector.attribution.carrying.refs import kind, sources_within
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.texts import text
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv

_DEPTH = 12


class Origin(NamedTuple):
    """The value in which words first stand, and its author; none: it was said (or is unseen)."""

    ref: str
    author: Operation | None
    sources: tuple[str, ...] = ()
    """What the author read without finding the words there."""


def standing_in(view: View, content: frozenset[str]) -> list[str]:
    """Values of the context in which all these words stand."""
    return [
        ref
        for ref in (*view.shown, *view.delivered)
        if (said := view.text(ref)) is not None and content <= text.content_tokens(said)
    ]


def origin(view: View, ref: str, content: frozenset[str]) -> Origin | None:
    """Who first wrote these words, following equal words from value to source.

    ``None``: a source whose text is not known, or is known in part, may have had them.
    """
    for _ in range(_DEPTH):
        makers = view.producers(ref)
        if not makers or kind(ref) == semconv.KIND_ANSWER:
            return Origin(ref, makers[0] if makers and kind(ref) == semconv.KIND_ANSWER else None)
        maker = makers[0]
        sources = tuple(s for s in sources_within(maker, ref) if s != ref)
        if not sources:
            return Origin(ref, None)
        having = [s for s in sources if _has(view, s, content)]
        if having:
            ref = having[0]
            continue
        read = (*sources, *maker.shown)
        texts = [view.text(each) for each in read]
        if None in texts or any(view.is_cut(each) for each in read):
            return None
        if text.coverage(content, [each for each in texts if each]) == 1:
            return Origin(ref, None)
        if kind(ref) in (semconv.KIND_MESSAGE, semconv.KIND_DOCUMENT):
            return Origin(ref, None)
        return Origin(ref, maker, sources)
    return None


def _has(view: View, ref: str, content: frozenset[str]) -> bool:
    said = view.text(ref)
    return said is not None and content <= text.content_tokens(said)
