"""As much English as the stand-in model needs: words, stems and sentences."""

from __future__ import annotations

import re
from functools import lru_cache

_STOPWORDS = """
    a about actually after again all also am an and any are as at be because been before being
    but by can could did do does doing don't done down during each else even for from further get
    give gives go going got had has have having he her here his how i if in into is it it's its just
    last lasts let like made make many maybe me more most much my no nor not now of off on once one
    only or other our out over own please quite rather really right run runs same she should so some
    such than that that's the their them then there these they thing this those though through to
    too under until up upon us user user's users very was we well were what when where which
    while who whom why will with would yes you your
"""
STOPWORDS = frozenset(_STOPWORDS.split())

_WORD = re.compile(r"\d[\d:.]*\d|\d|[A-Za-z][A-Za-z'’]*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"'”’])\s+|\n+")
_LIST_MARK = re.compile(r"^\s*(?:\d+\.|[-*•])\s+")
_SUFFIXES = ("ational", "ations", "ation", "ings", "ing", "ies", "ied", "ers", "es", "ed", "s", "e")


def words(text: str) -> list[str]:
    """Lower-case words of ``text`` without possessive endings, in order."""
    found = (match.group().lower().replace("’", "'").strip("'") for match in _WORD.finditer(text))
    return [word.removesuffix("'s") for word in found if word]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A crude stem: the word without its commonest inflection."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            root = word[: -len(suffix)]
            if suffix in ("ies", "ied"):
                return root + "i"
            doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in "aeiouls"
            return root[:-1] if doubled else root
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def content_stems(text: str) -> list[str]:
    """Stems of the words that carry meaning, in order, with repetitions."""
    return [stem(word) for word in words(text) if word not in STOPWORDS]


def sentences(text: str) -> list[str]:
    """The sentences of a message, list marks and emphasis removed."""
    plain = text.replace("**", "").replace("`", "")
    plain = re.sub(r"(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)", "", plain)
    parts = (_LIST_MARK.sub("", part).strip() for part in _SENTENCE_END.split(plain))
    return [part for part in parts if part]


def overlap(left: set[str], right: set[str]) -> float:
    """Jaccard similarity of two sets of stems."""
    return len(left & right) / len(left | right) if left and right else 0.0
