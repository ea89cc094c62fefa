"""Lengths of time named in a text, comparable across units. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from memtrace_collector.attribution.texts import text

_MINUTES = {
    "second": 1 / 60,
    "sec": 1 / 60,
    "minute": 1,
    "min": 1,
    "hour": 60,
    "hr": 60,
    "day": 1_440,
    "week": 10_080,
    "fortnight": 20_160,
}
_UNIT = "|".join(sorted(_MINUTES, key=len, reverse=True))
_NAMED = re.compile(
    rf"\b(?:(?P<half>half an?)|(?P<number>\d+(?:\.\d+)?|[a-z]+))[\s-]+(?P<unit>{_UNIT})s?\b"
    r"(?P<more> and a half)?",
    re.IGNORECASE,
)


@lru_cache(maxsize=4_096)
def durations(value: str) -> frozenset[int]:
    """The lengths of time that a text names, in whole seconds: two weeks, 14 days, half an hour."""
    found = set()
    for match in _NAMED.finditer(text.normalise(value)):
        count = 0.5 if match["half"] else _count(match["number"])
        if count is not None:
            minutes = (count + (0.5 if match["more"] else 0)) * _MINUTES[match["unit"].lower()]
            found.add(round(minutes * 60))
    return frozenset(found)


def besides(value: str) -> str:
    """A text without the lengths of time that it names."""
    return _NAMED.sub(" ", text.normalise(value))


def _count(said: str) -> float | None:
    word = said.lower()
    if word in ("a", "an", "one"):
        return 1
    try:
        return float(text.NUMBER_WORDS.get(word, word))
    except ValueError:
        return None
