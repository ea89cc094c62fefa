"""Values that hold many others: prompts, buffers of whole conversations. Pure.

What stands in one of their lines is said; words scattered over many of them are not.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def around(content: str, parts: Iterable[str]) -> str:
    """What a collection says around these of its parts."""
    for part in sorted(filter(None, parts), key=len, reverse=True):
        content = content.replace(part, " ")
    return content
