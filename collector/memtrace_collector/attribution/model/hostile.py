"""Captured content on its way into a prompt: bounded, cleaned, and between marks it cannot know.

Content is data to a model, never an instruction. Nothing here recognises attacks: what keeps a
value from speaking for another one is that each is shown alone (:mod:`questions`), that options
are offered without saying which one is expected, and that a reply is checked (:mod:`reply`).
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterable

_ROLE_MARKS = re.compile(
    r"<\|[^|<>]{0,64}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>"
    r"|<[^<>]{0,4}/?(?:system|assistant|user|tool)[^<>]{0,16}>",
    re.IGNORECASE,
)
"""What chat templates use between turns."""
_KEPT_CONTROLS = frozenset("\t\n\r\v\f")
_SAME_SHAPE = str.maketrans(
    {"＜": "<", "＞": ">", "｜": "|", "〈": "<", "〉": ">", "‹": "<", "›": ">"}
)
_ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
_LABEL_LENGTH = 4
_MARK_LENGTH = 12


def clean(content: str, limit: int) -> str:
    """One line of at most ``limit`` characters.

    Control, format and unassigned characters (zero-width, direction overrides, tags), lone
    surrogates and turn marks of chat templates are gone; runs of white space are one space.
    """
    visible = "".join(
        char
        for char in content.translate(_SAME_SHAPE)
        if char in _KEPT_CONTROLS
        or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Cn", "Co")
    )
    flat = " ".join(_ROLE_MARKS.sub(" ", visible).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def mark(contents: Iterable[str], rng: random.Random) -> str:
    """A random mark that occurs in none of the contents."""
    taken = "\n".join(contents)
    while True:
        found = _random_text(_MARK_LENGTH, rng)
        if found not in taken:
            return found


def labels(count: int, rng: random.Random) -> tuple[str, ...]:
    """As many different random labels."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[_random_text(_LABEL_LENGTH, rng)] = None
    return tuple(found)


def quoted(content: str, boundary: str) -> str:
    """Cleaned content between its marks."""
    return f"[{boundary}]{content}[/{boundary}]"


def _random_text(length: int, rng: random.Random) -> str:
    return "".join(rng.choice(_ALPHABET) for _ in range(length))
