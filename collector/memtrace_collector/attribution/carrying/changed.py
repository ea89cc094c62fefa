"""How a text differs from what it was made from: a negation more, an exchanged word. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memtrace_collector.attribution.texts import dates, text

REPEATED = 0.6
"""Share of a sentence's words that another has when one of them was made from the other."""


def says_the_opposite(
    made: str, needed: frozenset[str], originals: Iterable[str], subject: frozenset[str]
) -> bool:
    """Whether a sentence that has most of the needed words repeats what the originals say of the
    subject, with a negation more than the sentences of theirs that are nearest."""
    known = [part for original in originals for part in text.sentences(original)]
    said = subject.union(*map(text.content_tokens, known))
    for part in text.sentences(made):
        own = text.content_tokens(part) - _time_words(part)
        wanted = own & needed
        negations = _negations(part)
        if not negations or 2 * len(wanted) < max(1, len(needed)):
            continue
        nearest = [*_nearest(wanted, known), *_nearest(own, known)]
        repeats = bool(nearest) and len(own & said) >= REPEATED * len(own)
        if repeats and all(_negations(each) < negations for each in nearest):
            return True
    return False


def _nearest(tokens: frozenset[str], parts: Sequence[str]) -> list[str]:
    """The sentences that have most of these words; none when none has any."""
    shares = [len(tokens & text.content_tokens(part)) for part in parts]
    best = max(shares, default=0)
    return [part for part, share in zip(parts, shares) if best and share == best]


def _time_words(part: str) -> frozenset[str]:
    named = dates.phrases(part, None)
    return frozenset[str]().union(*(text.content_tokens(phrase.text) for phrase in named))


def _negations(part: str) -> int:
    return sum(word.token in text.NEGATIONS for word in text.words(part))


def has_instead(content: str, needed: frozenset[str], wrong: frozenset[str]) -> bool:
    """Whether a text has wrong words, and not all of the needed ones."""
    own = text.content_tokens(content)
    return bool(own & wrong) and not needed <= own
