"""What changed from one text to another, word by word. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SAME, REMOVED, ADDED = "same", "removed", "added"
MAX_CELLS = 250_000
"""Words of one text times words of the other that are compared word by word, after what both
begin and end with; of larger texts that middle is shown as replaced whole."""
_ALIKE = 0.4
"""Share of the shorter text that is the same in both."""

_WITHOUT_SPACES = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
"""Scripts whose words are not told apart by spaces: each character counts as one."""
_WORDS = re.compile(rf"\s*(?:{_WITHOUT_SPACES}|(?:(?!{_WITHOUT_SPACES})\w)+|[^\w\s])|\s+")


class Segment(NamedTuple):
    """A stretch of text that is the same in both, was removed, or was added."""

    text: str
    kind: str


def word_diff(before: str, after: str) -> list[Segment]:
    """The segments of both texts in order; those that are not added give ``before`` again, those
    that are not removed ``after``."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    start = _equal_ends(old, new)
    end = _equal_ends(old[start:][::-1], new[start:][::-1])
    parts = [Segment("".join(old[:start]), SAME)]
    for removed, added, same in _compared(old[start : len(old) - end], new[start : len(new) - end]):
        parts += _change(removed, added)
        parts.append(Segment(same, SAME))
    parts.append(Segment("".join(old[len(old) - end :]), SAME))
    return _joined(parts)


def are_alike(before: str, after: str, segments: Sequence[Segment]) -> bool:
    """Have two texts so much in common that comparing them by words tells something?"""
    same = sum(len(part.text) for part in segments if part.kind == SAME)
    return same >= _ALIKE * min(len(before), len(after))


def _equal_ends(old: Sequence[str], new: Sequence[str]) -> int:
    return next((n for n, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """What was removed, what came in its place, and what follows in both."""
    if len(old) * len(new) > MAX_CELLS:
        yield "".join(old), "".join(new), ""
        return
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        removed, added = "".join(old[i:j]), "".join(new[k:m])
        yield ("", "", removed) if tag == "equal" else (removed, added, "")


def _change(removed: str, added: str) -> Iterator[Segment]:
    """A space that both begin with is no change, nor are words that the longer ends with."""
    space = len(removed) - len(removed.lstrip())
    if removed[:space] != added[:space] or not added:
        space = 0
    yield Segment(removed[:space], SAME)
    removed, added = removed[space:], added[space:]
    shared = min(removed, added, key=len)
    if not (_ends_with(removed, shared) and _ends_with(added, shared)):
        shared = ""
    yield Segment(removed[: len(removed) - len(shared)], REMOVED)
    yield Segment(added[: len(added) - len(shared)], ADDED)
    yield Segment(shared, SAME)


def _ends_with(text: str, words: str) -> bool:
    before = text[: len(text) - len(words)]
    return text.endswith(words) and not before[-1:].isalnum()


def _joined(parts: Sequence[Segment]) -> list[Segment]:
    joined: list[Segment] = []
    for part in parts:
        if joined and joined[-1].kind == part.kind:
            joined[-1] = Segment(joined[-1].text + part.text, part.kind)
        elif part.text:
            joined.append(part)
    return joined
