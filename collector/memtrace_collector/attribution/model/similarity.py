"""Doubts answered by sentence embeddings, calibrated on the case itself. Pure but for the vectors.

No threshold fits every embedding model. What counts is the case's own scale: a value carries the
item when it is about as near to the need as the evidence that says it, and nearer than every text
of the case that says nothing of it; it does not when it is no nearer than those. Between the two
the doubt stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from memtrace_collector.attribution.carrying.judgements import CARRIES, Doubt
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.model.collect import Key
from memtrace_collector.attribution.texts import text
from memtrace_collector.graph.case import Case
from memtrace_otel import semconv

MAX_OTHERS = 48
MIN_OTHERS = 4
"""Fewer texts say too little about the scale."""
MAX_DOUBTS = 64
MAX_SENTENCES = 8
MARGIN = 0.1
"""Share of the distance between the evidence and the nearest other text that is left open on
either side."""
_KINDS = (semconv.KIND_MESSAGE, semconv.KIND_FACT, semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)

Vector = Sequence[float]


class Embedder(Protocol):
    """Turns texts into vectors of one length; safe for threads."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector per text, in order.

        Raises:
            EmbeddingError: there are none.
        """
        ...


class EmbeddingError(Exception):
    """Texts could not be embedded: the rules' own reading stands."""


def judged(case: Case, doubts: Iterable[Doubt], embedder: Embedder) -> dict[Key, bool | None]:
    """Answers to the open doubts about values; those that stay open are left out.

    Raises:
        EmbeddingError: texts could not be embedded.
    """
    found: dict[Key, bool | None] = {}
    asked = [each for each in doubts if each.kind == CARRIES and each.leaning is None]
    by_item: dict[str, list[Doubt]] = {}
    for doubt in asked[:MAX_DOUBTS]:
        by_item.setdefault(doubt.item.text, []).append(doubt)
    for of_item in by_item.values():
        found.update(_of_item(case, of_item, embedder))
    return found


def _of_item(case: Case, doubts: Sequence[Doubt], embedder: Embedder) -> dict[Key, bool | None]:
    need, item = doubts[0].need, doubts[0].item
    right = _sentences(doubts[0].sources)
    others = _others(case, doubts[0])
    if not right or len(others) < MIN_OTHERS:
        return {}
    values = [_sentences([doubt.content]) for doubt in doubts]
    texts = list(
        dict.fromkeys(
            [f"{need.asked} {item.text}", *right, *others, *(s for v in values for s in v)]
        )
    )
    vectors = dict(zip(texts, embedder.embed(texts)))
    target = vectors[texts[0]]
    evidence = _nearest(target, right, vectors)
    elsewhere = _nearest(target, others, vectors)
    answers = {
        doubt.key: verdict_of(_nearest(target, value, vectors), evidence, elsewhere)
        for doubt, value in zip(doubts, values)
        if value
    }
    return {key: answer for key, answer in answers.items() if answer is not None}


def verdict_of(value: float, evidence: float, elsewhere: float) -> bool | None:
    """Whether a similarity is the evidence's rather than any other text's."""
    room = (evidence - elsewhere) * MARGIN
    if evidence <= elsewhere:
        return None
    middle = (evidence + elsewhere) / 2
    if value >= middle + room:
        return True
    return False if value <= elsewhere + room else None


def _others(case: Case, doubt: Doubt) -> list[str]:
    """Sentences of the case that have no word of the item."""
    found: dict[str, None] = {}
    for ref in sorted(case.texts):
        if kind(ref) not in _KINDS or case.texts[ref] in doubt.sources:
            continue
        for part in text.sentences(case.texts[ref])[:MAX_SENTENCES]:
            if not text.content_tokens(part) & doubt.item.tokens:
                found[part] = None
        if len(found) >= MAX_OTHERS:
            break
    return list(found)[:MAX_OTHERS]


def _sentences(contents: Iterable[str]) -> list[str]:
    parts = [part for content in contents for part in text.sentences(content)[:MAX_SENTENCES]]
    return list(dict.fromkeys(parts))


def _nearest(target: Vector, texts: Iterable[str], vectors: Mapping[str, Vector]) -> float:
    return max(cosine(target, vectors[each]) for each in texts)


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of two vectors' angle; 0 where one is null."""
    size = math.sqrt(math.fsum(x * x for x in one) * math.fsum(y * y for y in other))
    return math.fsum(x * y for x, y in zip(one, other)) / size if size else 0.0
