"""Wrong words for a right text, by rule and seed: another date, number or name of the same kind."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memtrace_collector.bench.stand_in.writing import MONTHS
from memtrace_collector.demo.language import content_stems

_NUMBERS = (
    "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_DAY = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)}),? (\d{{4}})\b")
_MONTH = re.compile(rf"\b({'|'.join(MONTHS)})\b")
_DIGITS = re.compile(r"(?<![\w.:'])(?<!Turn )\d+(?:[.,]\d+)*(?![\w:'])")
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBERS)})\b", re.IGNORECASE)
_WEEKDAYS = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip
_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})\b")
_QUESTION_WORDS = re.compile(
    r"^(?:(?:in|on|at|to|from|for|with|by|of) )?"
    r"(?P<word>what|who|whom|whose|when|where|which|how|why)\b"
    r"(?:\s+(?P<of>long|many|much|often|old|kinds? of|types? of))?"
    r"(?:\s+(?:is|was|are|were|did|does|do|has|have|had|will|would|can|could)\b)?"
    r"(?:\s+it been since\b)?\s*",
    re.IGNORECASE,
)
_BETWEEN_ITEMS = re.compile(r",\s*(?:and\s+)?|\s+and\s+")
_SENTENCE = re.compile(r":|[.!?]$")
_LATER_DAYS = 9
_LATER_MONTHS = 4
_MORE = 3
_LONGEST_LIST = 12
"""Words of an expected answer that is a list of values and no sentence."""
_MOST_POOL_WORDS = 5
_SHORT = 4
"""Up to so many words, an expected answer is one value that can be another as a whole."""


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
        pattern = _word(old)
        if facts and all(pattern.search(fact) for fact in facts):
            written = {match.group() for fact in facts for match in pattern.finditer(fact)}
            if len(written) == 1:
                return Change(written.pop(), new, pattern.sub(new, expected))
    return None


def altered(expected: str, question: str, pool: Sequence[str], chance: random.Random) -> str:
    """The expected answer with another date, number, name or word in it; empty if it has none."""
    return next(
        (
            _word(old).sub(new, expected)
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


def question_word(question: str) -> str:
    """What a question begins with, as ``how long``: answers to such questions are of one kind."""
    found = _QUESTION_WORDS.match(question.strip())
    return f"{found['word']} {found['of'] or ''}".strip().lower() if found else ""


def topic(question: str) -> str:
    """What a question is about: the question without what makes it one."""
    return _QUESTION_WORDS.sub("", question.strip()).rstrip("?").strip() or question


def _word(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(text.rstrip('.'))}(?!\w)", re.IGNORECASE)


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
        yield number, _larger(number)
    for match in _NUMBER_WORD.finditer(expected):
        place = (_NUMBERS.index(match.group().lower()) + _MORE) % len(_NUMBERS)
        yield match.group(), _NUMBERS[place]
    for match in _WEEKDAY.finditer(expected):
        place = (_WEEKDAYS.index(match.group()) + _MORE) % len(_WEEKDAYS)
        yield match.group(), _WEEKDAYS[place]
    others = [text for text in pool if _is_another(text, expected, question)]
    is_list = len(expected.split()) <= _LONGEST_LIST and "'" not in expected
    parts = _BETWEEN_ITEMS.split(expected.rstrip(".")) if is_list and others else []
    for part in parts:
        if 0 < len(part.split()) <= _SHORT:
            yield part, chance.choice(others)


def _larger(number: str) -> str:
    """A number in whose first digits :data:`_MORE` more stands: 1,375 is 4,375."""
    first = re.match(r"\d+", number)
    return f"{int(first.group()) + _MORE}{number[first.end() :]}" if first else number


def _is_another(text: str, expected: str, question: str) -> bool:
    """A short answer to another question that shares no word that matters with this one."""
    stems = set(content_stems(text))
    known = set(content_stems(expected)) | set(content_stems(question))
    one = len(_BETWEEN_ITEMS.split(text)) == 1 and not _SENTENCE.search(text)
    return one and 0 < len(text.split()) <= _SHORT and bool(stems) and not stems & known
