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
    """The value in which words first stand, and its author."""

    ref: str
    author: Operation
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

    ``None``: somebody said them, or a source that is not known, or in part, may have had them.
    """
    for _ in range(_DEPTH):
        makers = view.producers(ref)
        if not makers:
            return None
        maker = makers[0]
        if kind(ref) == semconv.KIND_ANSWER:
            return Origin(ref, maker)
        sources = tuple(s for s in sources_within(maker, ref) if s != ref)
        having = next((s for s in sources if _has(view, s, content)), None)
        if having is None:
            return _written(view, ref, maker, sources, content)
        ref = having
    return None


def _written(
    view: View, ref: str, maker: Operation, sources: tuple[str, ...], content: frozenset[str]
) -> Origin | None:
    """The maker as the author, if all that it read is known and did not have the words."""
    read = (*sources, *maker.shown)
    texts = [view.text(each) for each in read]
    if not sources or None in texts or any(view.is_cut(each) for each in read):
        return None
    said = kind(ref) in (semconv.KIND_MESSAGE, semconv.KIND_DOCUMENT)
    if said or text.coverage(content, [each for each in texts if each]) == 1:
        return None
    return Origin(ref, maker, sources)


def _has(view: View, ref: str, content: frozenset[str]) -> bool:
    said = view.text(ref)
    return said is not None and content <= text.content_tokens(said)
