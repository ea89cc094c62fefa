"""Replies that repeat the expected answer with another value in its place. Pure."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import NamedTuple

from memtrace_collector.attribution.texts import text

_LONGEST = 3
"""Words that are exchanged at once; more is another way of saying it."""
_MOST_WORDS = 400
SURELY_COPIED = 4
"""Words shared in order from which on a reply is a copy and no wording of its own."""


class Exchange(NamedTuple):
    """Words of the expected answer, the words said in their place, and how many words are the
    same in the same order around them."""

    expected: frozenset[str]
    said: frozenset[str]
    shared: int


def exchanges(expected: str, reply: str) -> tuple[Exchange, ...]:
    """Where a reply puts other words between words of the expected answer."""
    wanted, given = _content_words(expected), _content_words(reply)
    steps = SequenceMatcher(None, wanted, given, autojunk=False).get_opcodes()
    shared = sum(end - start for what, start, end, _, _ in steps if what == "equal")
    found = []
    for place, (what, start, end, first, last) in enumerate(steps):
        if what != "replace" or max(end - start, last - first) > _LONGEST:
            continue
        around = (steps[place - 1 : place] or []) + steps[place + 1 : place + 2]
        if any(each[0] == "equal" for each in around):
            old, new = frozenset(wanted[start:end]), frozenset(given[first:last])
            if text.unlike(new, frozenset(wanted)) and text.unlike(old, frozenset(given)):
                found.append(Exchange(old, new, shared))
    return tuple(found)


def _content_words(said: str) -> list[str]:
    known = text.content_tokens(said)
    return [word.token for word in text.words(said) if word.token in known][:_MOST_WORDS]
