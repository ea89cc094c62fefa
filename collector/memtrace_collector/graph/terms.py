"""Search terms of a text: the one tokeniser that every store shares. Pure.

Words are folded in case and accents; scripts that write no spaces (Chinese, Japanese, Thai …)
give overlapping pairs of characters, so that they can be found at all.
"""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0002fa1f]+"
)
MAX_TERMS = 5_000


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


def _folded(text: str) -> str:
    folded = text.casefold()
    if folded.isascii():
        return folded
    decomposed = unicodedata.normalize("NFKD", folded)
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", plain)


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 1 else [run]
