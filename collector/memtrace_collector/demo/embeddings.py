"""A deterministic embedding: hashed stems and character trigrams, L2-normalised."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

from memtrace_collector.demo.language import content_stems, words

DIMENSIONS = 512
_STEM_WEIGHT = 1.0
_TRIGRAM_WEIGHT = 0.12
_WORD_WEIGHT = 0.05


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The vector of ``text``: texts that share stems are near, spelling variants nearly so."""
    vector = [0.0] * dimensions
    for feature, weight in _features(text).items():
        digest = hashlib.blake2b(feature.encode(), digest_size=8).digest()
        value = int.from_bytes(digest, "big")
        sign = 1.0 if value & 1 else -1.0
        vector[(value >> 1) % dimensions] += sign * weight
    norm = math.sqrt(sum(x * x for x in vector))
    if norm == 0.0:
        vector[0] = norm = 1.0
    return [x / norm for x in vector]


def _features(text: str) -> dict[str, float]:
    features: dict[str, float] = {}
    for stem, count in Counter(content_stems(text)).items():
        features["s " + stem] = _STEM_WEIGHT * (1.0 + math.log(count))
        padded = f"^{stem}$"
        for start in range(len(padded) - 2):
            trigram = "t " + padded[start : start + 3]
            features[trigram] = features.get(trigram, 0.0) + _TRIGRAM_WEIGHT
    for word in dict.fromkeys(words(text)):
        features["w " + word] = _WORD_WEIGHT
    return features
