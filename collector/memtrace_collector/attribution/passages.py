"""Values that hold many others: prompts, buffers of whole conversations. Pure.

What stands in one of their lines is said; words scattered over many of them are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from memtrace_collector.attribution import dates

LEAD = 80
"""Characters before a quotation in which its day and speaker stand."""
QUOTABLE_CHARACTERS = 12
QUOTABLE_WORDS = 3
"""A shorter text stands in a longer one by chance."""
_MANY_LINES = 3
_MUCH_LONGER = 2
"""A collection is longer than this many times what was said."""


def parts(content: str, said: Iterable[str]) -> list[str]:
    """The lines of a collection; any other text as it is. ``said``: what is sought in it."""
    lines = [line for line in content.splitlines() if line.strip()]
    longest = max(map(len, said), default=0)
    if len(lines) < _MANY_LINES or len(content) < _MUCH_LONGER * longest:
        return [content]
    return lines


def quoted_after(content: str, said: str) -> str | None:
    """What stands right before a verbatim quotation; ``None``: it is not quoted."""
    wanted = " ".join(said.split())
    if len(wanted) < QUOTABLE_CHARACTERS or len(wanted.split()) < QUOTABLE_WORDS:
        return None
    flat = " ".join(content.split())
    place = flat.find(wanted)
    return None if place < 0 else flat[max(0, place - LEAD) : place]


def days_named(content: str) -> list[date]:
    """The single days that a text names without relative words."""
    return [
        reading.start
        for phrase in dates.phrases(content, None)
        for reading in phrase.readings
        if reading.days == 1
    ]


def leading_day(line: str) -> date | None:
    """The day that a line begins with, as those of a log do."""
    first = next(iter(dates.phrases(line[:LEAD], None)), None)
    if first is None or first.start > len(line) - len(line.lstrip(" -*•[(")):
        return None
    return next((reading.start for reading in first.readings if reading.days == 1), None)
