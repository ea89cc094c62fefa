"""Cutting a message into segments, and losing the one that matters. Pure."""

from __future__ import annotations

from memtrace_collector.bench.dialogue import Question
from memtrace_collector.demo.language import content_stems, sentences

MOST_CHARS = 240
_FEWEST_WORDS = 3


def segments(text: str, most_chars: int = MOST_CHARS) -> list[str]:
    """``text`` in pieces of whole sentences, each of at most ``most_chars`` where it can be."""
    packed: list[str] = []
    for sentence in sentences(text) or [text]:
        if packed and len(packed[-1]) + len(sentence) < most_chars:
            packed[-1] = f"{packed[-1]} {sentence}"
        else:
            packed.append(sentence)
    return packed


def without_needed(question: Question, texts: list[str]) -> list[str]:
    """``texts`` without those that hold words of the expected answer, or most of the question's.

    Where that would leave nothing, the only text is cut before the first such word; where that
    leaves nothing either, all is kept.
    """
    asked = set(content_stems(question.text))
    needed = set(content_stems(question.expected)) - asked
    hit = [bool(needed & set(content_stems(text))) for text in texts]
    if not any(hit):
        needed = asked
        shares = [len(asked & set(content_stems(text))) for text in texts]
        hit = [share == max(shares, default=0) for share in shares]
    kept = [text for text, lost in zip(texts, hit, strict=True) if not lost]
    return kept or _cut_before(texts, needed)


def _cut_before(texts: list[str], needed: set[str]) -> list[str]:
    words = texts[0].split()
    at = next((n for n, word in enumerate(words) if needed & set(content_stems(word))), 0)
    if at >= _FEWEST_WORDS:
        return [" ".join(words[:at])]
    rest = [word for word in words[at + 1 :] if not needed & set(content_stems(word))]
    return [" ".join(rest)] if len(rest) >= _FEWEST_WORDS else texts
