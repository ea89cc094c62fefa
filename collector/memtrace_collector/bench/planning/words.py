"""Wrong words for a right text, by rule and seed: another date, number or name of the same kind."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memtrace_collector.bench.stand_in.writing import MONTHS
from memtrace_collector.demo.language import STOPWORDS, content_stems, words

_NUMBERS = (
    "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_DAY = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)}),? (\d{{4}})\b")
_MONTH = re.compile(rf"\b({'|'.join(MONTHS)})\b")
_DIGITS = re.compile(r"\b\d+(?:\.\d+)?\b")
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBERS)})\b", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_WORD = re.compile(r"\b[a-z]{4,}\b")
_QUESTION_WORDS = re.compile(
    r"^(?:what|who|whom|whose|when|where|which|how|why)\b"
    r"(?:\s+(?:is|was|are|were|did|does|do|has|have|had|will|would|can|could)\b)?\s*",
    re.IGNORECASE,
)
_LATER_DAYS = 9
_LATER_MONTHS = 4
_MORE = 3
_MOST_POOL_WORDS = 5


@dataclass(frozen=True, slots=True)
class Change:
    """Replace ``old`` by ``new`` in a fact, and the expected answer becomes ``reply``."""

    old: str
    new: str
    reply: str


def change(
    facts: Sequence[str], expected: str, question: str, pool: Sequence[str], chance: random.Random
) -> Change | None:
    """A change of a word that every one of ``facts`` shares with the expected answer.

    None where they share none that can be changed, or where it would change nothing.
    """
    for old, new in _candidates(expected, question, pool, chance):
        pattern = re.compile(rf"\b{re.escape(old)}\b")
        if facts and all(pattern.search(fact) for fact in facts):
            return Change(old, new, pattern.sub(new, expected))
    return None


def altered(expected: str, question: str, pool: Sequence[str], chance: random.Random) -> str:
    """The expected answer with another date, number, name or word in it; empty if it has none."""
    return next(
        (
            re.sub(rf"\b{re.escape(old)}\b", new, expected)
            for old, new in _candidates(expected, question, pool, chance)
        ),
        "",
    )


def unheard(pool: Sequence[str], texts: Sequence[str], chance: random.Random) -> str:
    """A short answer of ``pool`` of which no word that matters stands in ``texts``."""
    heard: set[str] = set()
    for text in texts:
        heard.update(content_stems(text))
    shuffled = list(pool)
    chance.shuffle(shuffled)
    for text in shuffled:
        stems = set(content_stems(text))
        if stems and len(text.split()) <= _MOST_POOL_WORDS and not stems & heard:
            return text
    return ""


def topic(question: str) -> str:
    """What a question is about: the question without what makes it one."""
    return _QUESTION_WORDS.sub("", question.strip()).rstrip("?").strip() or question


def _candidates(
    expected: str, question: str, pool: Sequence[str], chance: random.Random
) -> Iterator[tuple[str, str]]:
    for match in _DAY.finditer(expected):
        day, month, year = match.groups()
        yield match.group(), f"{(int(day) + _LATER_DAYS - 1) % 28 + 1} {month} {year}"
    for match in _MONTH.finditer(expected):
        later = (MONTHS.index(match.group()) + _LATER_MONTHS) % len(MONTHS)
        yield match.group(), MONTHS[later]
    for match in _DIGITS.finditer(expected):
        number = match.group()
        yield number, f"{float(number) + _MORE:g}"
    for match in _NUMBER_WORD.finditer(expected):
        place = (_NUMBERS.index(match.group().lower()) + _MORE) % len(_NUMBERS)
        yield match.group(), _NUMBERS[place]
    asked = set(content_stems(question))
    for pattern in (_NAME, _WORD):
        for match in pattern.finditer(expected):
            old = match.group()
            if not set(content_stems(old)) or set(content_stems(old)) & asked:
                continue
            new = _like(pattern, expected, question, pool, chance)
            if new and old.lower() not in STOPWORDS:
                yield old, new


def _like(
    pattern: re.Pattern[str],
    expected: str,
    question: str,
    pool: Sequence[str],
    chance: random.Random,
) -> str:
    """A word of the same shape from the other answers."""
    known = set(words(expected)) | set(words(question)) | STOPWORDS
    found = {w for text in pool for w in pattern.findall(text) if w.lower() not in known}
    fitting = sorted(word for word in found if content_stems(word))
    return chance.choice(fitting) if fitting else ""
