"""Search terms of a text: the one tokeniser that every store shares. Pure.

Words are folded in case and accents; scripts that write no spaces (Chinese, Japanese, Thai …)
give overlapping pairs of characters, so that they can be found at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import NamedTuple

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0002fa1f]+"
)
MAX_TERMS = 5_000
_OPEN_FROM = 5
_SHORTEST_LEAD = 4
_ENDING = re.compile("(?:ations?|ments?|ings?|ies|ied|ed|es|s|ly|er|e|y)$")


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order, repeats included, at most :data:`MAX_TERMS`."""
    folded = _folded(text)
    if folded.isascii():
        return _WORD.findall(folded)[:MAX_TERMS]
    found: list[str] = []
    for word in _WORD.findall(folded):
        position = 0
        for run in _UNSPACED.finditer(word):
            if run.start() > position:
                found.append(word[position : run.start()])
            found.extend(_pairs(run[0]))
            position = run.end()
        if position < len(word):
            found.append(word[position:])
        if len(found) >= MAX_TERMS:
            break
    return found[:MAX_TERMS]


class Wanted(NamedTuple):
    """A term to search for: ``lead`` itself, or with ``open`` what begins with it. ``weight``:
    how often the search names it, at most twice."""

    lead: str
    open: bool
    weight: int


def wanted(text: str, limit: int) -> list[Wanted]:
    """What to search for when looking for texts like this one; at most ``limit`` terms.

    Endings of words vary with their use; what is left of a word must keep four characters.
    """
    leads = [_lead(term) for term in terms(text)]
    counts = Counter(leads)
    return [Wanted(*lead, min(2, counts[lead])) for lead in dict.fromkeys(leads[:limit])]


def leads(text: str, limit: int) -> list[str]:
    """What the numbers and the longer words of a text begin with: short ones say little."""
    return [
        each.lead
        for each in wanted(text, limit)
        if len(each.lead) >= _SHORTEST_LEAD or not each.lead.isascii() or each.lead[0].isdigit()
    ]


def share_of(wanted_text: str, text: str, limit: int = 40) -> float:
    """The share of the telling words of one text that another has; of short words alone all of
    them count."""
    telling = leads(wanted_text, limit) or [each.lead for each in wanted(wanted_text, limit)]
    words = set(terms(text))
    had = sum(any(word.startswith(lead) for word in words) for lead in telling)
    return had / len(telling) if telling else 0.0


def _lead(term: str) -> tuple[str, bool]:
    if not term.isascii() or not term.isalpha() or len(term) < _OPEN_FROM:
        return term, False
    found = _ENDING.search(term, _SHORTEST_LEAD)
    return (term[: found.start()] if found else term), True


def _folded(text: str) -> str:
    folded = text.casefold()
    if folded.isascii():
        return folded
    decomposed = unicodedata.normalize("NFKD", folded)
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", plain)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 1 else [run]
