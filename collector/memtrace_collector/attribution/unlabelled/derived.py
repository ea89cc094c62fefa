"""What should have been known when nobody said what was right: derived from the graph. Pure.

The statements that bear on the question stand for the missing expected answer; of several that
bear on it about equally, the latest is the current one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.needs import Item, Need, asks_when
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.said import evidence_refs, said_before
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.texts import dates, text
from memtrace_otel import semconv

BEARS = 0.5
"""Share of the question's words, weighted by rarity, that makes a statement bear on it."""
CLOSE = 0.85
"""Statements within this share of the best bear on the question equally well."""


class Statement(NamedTuple):
    """A sentence that somebody said or memory holds, and how well it fits the question."""

    ref: str
    sentence: str
    share: float
    when: tuple[object, ...]


def statements(view: View, need: Need) -> list[Statement]:
    """What bears on the question, the best first; of equals the latest."""
    if view.case.evidence_given and evidence_refs(view):
        return _closest(_rated(view, need, evidence_refs(view)), 0.0)
    said = _own_words(view, said_before(view))
    found = _rated(view, need, said) or _rated(view, need, view.current_versions)
    return _closest(found, BEARS)


def has_texts(view: View) -> bool:
    """Whether the question and something that was said or stored can be read."""
    return view.question is not None and any(
        view.text(ref) is not None for ref in (*said_before(view), *view.current_versions)
    )


def _closest(found: Sequence[Statement], least: float) -> list[Statement]:
    best = max((each.share for each in found), default=0.0)
    if best < least:
        return []
    return sorted(
        (each for each in found if each.share >= CLOSE * best),
        key=lambda each: each.when,
        reverse=True,
    )


def _own_words(view: View, refs: Iterable[str]) -> list[str]:
    """What the people said; what the assistant said only where nothing else was said."""
    known = list(refs)
    assistant = {
        ref
        for op in view.case.operations.values()
        for ref, role in op.roles.items()
        if role == "assistant"
    }
    return [ref for ref in known if ref not in assistant] or known


def _rated(view: View, need: Need, refs: Sequence[str]) -> list[Statement]:
    parts = [(ref, part) for ref in refs for part in text.sentences(view.text(ref) or "")]
    weights = _rarity(need.question, [text.content_tokens(part) for _, part in parts])
    whole = sum(weights.values())
    if not whole:
        return []
    found = []
    for ref, part in parts:
        tokens = text.content_tokens(part)
        share = sum(weight for token, weight in weights.items() if token in tokens) / whole
        if share and tokens - need.question and not text.asks(part):
            found.append(Statement(ref, part, share, _when(view, ref)))
    return found


def _rarity(tokens: frozenset[str], parts: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weights of the question's words; one that stands nowhere weighs as little as the least."""
    counts = Counter(token for part in parts for token in tokens & part)
    known = {token: math.log1p(len(parts) / counts[token]) for token in tokens if counts[token]}
    least = min(known.values(), default=0.0)
    return {token: known.get(token, least) for token in tokens}


def _when(view: View, ref: str) -> tuple[object, ...]:
    moment = view.moment(ref)
    makers = view.producers(ref) or view.readers(ref)
    started = makers[0].start_ns if makers else 0
    return (moment.day.isoformat() if moment else "", started, ref)


def sought_for(view: View, need: Need, bearing: Sequence[Statement]) -> Sought:
    """The need that the current statement stands for, as something to be followed."""
    current = bearing[0]
    same = tuple(dict.fromkeys(each.ref for each in bearing if _says_the_same(need, each, current)))
    asked_when = asks_when(need.asked)
    intervals = _times(view, current) if asked_when else ()
    tokens = text.content_tokens(current.sentence) - need.question
    derived = Need(
        "temporal" if intervals else "content", need.asked, current.sentence, need.question
    )
    item = Item(current.sentence, tokens, intervals)
    sources = tuple(
        ref for ref in same if kind(ref) not in (semconv.KIND_FACT, semconv.KIND_MEMORY)
    )
    return Sought(
        view, derived, item, sources, tokens if intervals else frozenset(), loose=not intervals,
        stated_in_evidence=False, derived=True,
    )  # fmt: skip


def _says_the_same(need: Need, one: Statement, other: Statement) -> bool:
    mine, theirs = (text.content_tokens(each.sentence) - need.question for each in (one, other))
    return len(mine & theirs) >= CLOSE * min(len(mine), len(theirs))


def _times(view: View, statement: Statement) -> tuple[dates.Interval, ...]:
    moment = view.moment(statement.ref)
    day = moment.day if moment and not moment.assumed else None
    found = [r for p in dates.phrases(statement.sentence, day) for r in p.readings]
    return tuple(found) or ((dates.Interval(day, day),) if day else ())
