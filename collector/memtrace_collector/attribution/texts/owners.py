"""Of whom a text speaks: its owner, or somebody the owner is related to. Pure."""

from __future__ import annotations

import re

from memtrace_collector.attribution.texts import text

_RELATION = (
    "sister|brother|mother|father|mom|mum|dad|wife|husband|son|daughter|friend|boss|colleague|"
    "partner|roommate|neighbor|neighbour|cousin|aunt|uncle|girlfriend|boyfriend|fiance|fiancee|"
    "grandmother|grandfather|manager"
)
_OTHER_OWNER = re.compile(
    rf"^\W*(?:the )?(?:user's|my|his|her|their)\s+(?:\w+\s+)?({_RELATION})\b", re.IGNORECASE
)
_SPOKEN_OF = re.compile(rf"\bmy\s+(?:\w+\s+)?({_RELATION})\b", re.IGNORECASE)
_OWN_STATEMENT = re.compile(r"^\W*(?:the )?(?:user|I)\b(?!')", re.IGNORECASE)


def owner_named(content: str) -> frozenset[str]:
    """The relation (sister, boss …) of whom a text opens to speak; empty for the owner."""
    owner = _OTHER_OWNER.match(content)
    return text.content_tokens(owner[1]) if owner else frozenset()


def owner_was_lost(right: str, wrong: str) -> bool:
    """Whether what was said of a relation is put down as the user's own."""
    said = text.content_tokens(wrong)
    return bool(_OWN_STATEMENT.match(wrong)) and any(
        (owner := text.content_tokens(found[1])) and not owner & said
        for found in _SPOKEN_OF.finditer(right)
    )
