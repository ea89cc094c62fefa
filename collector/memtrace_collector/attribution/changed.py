"""How a text differs from what it was made from: a negation more, an exchanged word. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from memtrace_collector.attribution import dates, text

REPEATED = 0.6
"""Share of a sentence's words that another has when one of them was made from the other."""


def says_the_opposite(made: str, needed: frozenset[str], originals: Iterable[str]) -> bool:
    """Whether a sentence that has most of the needed words repeats one of the originals with a
    negation more than that has."""
    known = [part for original in originals for part in text.sentences(original)]
    for part in text.sentences(made):
        own = text.content_tokens(part) - _time_words(part)
        negations = _negations(part)
        if not negations or 2 * len(own & needed) < max(1, len(needed)):
            continue
        shares = [len(own & text.content_tokens(other)) for other in known]
        best = max(shares, default=0)
        nearest = [other for other, share in zip(known, shares) if share == best]
        if best >= REPEATED * len(own) and all(_negations(each) < negations for each in nearest):
            return True
    return False


def _time_words(part: str) -> frozenset[str]:
    named = dates.phrases(part, None)
    return frozenset[str]().union(*(text.content_tokens(phrase.text) for phrase in named))


def _negations(part: str) -> int:
    return sum(word.token in text.NEGATIONS for word in text.words(part))


def has_instead(content: str, needed: frozenset[str], wrong: frozenset[str]) -> bool:
    """Whether a text has wrong words, and not all of the needed ones."""
    own = text.content_tokens(content)
    return bool(own & wrong) and not needed <= own
