"""Vectors and scores of texts, and orders made of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from memtrace_collector.bench.stand_in.model import StandIn
from memtrace_collector.demo.language import content_stems

_K1, _B = 1.5, 0.75
_RRF = 60
_UNDERSTOOD = 0.45
"""How far the vector of what speaks of the evidence is drawn to the question's."""


def embedded(model: StandIn, text: str, line: str) -> list[float]:
    """The vector of a stored text, by a model that understands what it is about.

    The stand-in's own vectors compare words. A real embedding also places a text near a question
    that it answers in other words; here the stand-in's knowledge of the case does that. ``line``:
    the text with its date, by which it is recognised.
    """
    vector = model.embed(text)
    if not model.oracle.speaks_of(line):
        return vector
    asked = model.embed(model.case.question.text)
    return [x + _UNDERSTOOD * y for x, y in zip(vector, asked, strict=True)]


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """Okapi BM25 of each text, over stems; 0 for a text that shares none."""
    bags = [Counter(content_stems(text)) for text in texts]
    sizes = [sum(bag.values()) for bag in bags]
    mean = sum(sizes) / len(sizes) if sum(sizes, 0) else 1.0
    seen = Counter(stem for bag in bags for stem in bag)
    weights = {
        stem: math.log(1 + (len(bags) - seen[stem] + 0.5) / (seen[stem] + 0.5))
        for stem in dict.fromkeys(content_stems(query))
    }
    return [
        sum(
            weight * bag[stem] * (_K1 + 1) / (bag[stem] + _K1 * (1 - _B + _B * size / mean))
            for stem, weight in weights.items()
            if bag[stem]
        )
        for bag, size in zip(bags, sizes, strict=True)
    ]


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Cosine of two vectors; 0 where one is all zeros."""
    size = math.hypot(*left) * math.hypot(*right)
    return math.fsum(x * y for x, y in zip(left, right, strict=True)) / size if size else 0.0


def order(scores: Sequence[float]) -> list[int]:
    """Indexes, the best score first; equal ones as they came."""
    return sorted(range(len(scores)), key=lambda index: -scores[index])


def fused(rankings: Sequence[Sequence[int]]) -> dict[int, float]:
    """Reciprocal rank fusion: index -> score."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, index in enumerate(ranking, start=1):
            scores[index] = scores.get(index, 0.0) + 1 / (_RRF + rank)
    return scores
