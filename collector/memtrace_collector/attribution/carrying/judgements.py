"""What may be asked where the texts leave it open: the one door for a model into the rules.

A judgement fills a gap (``None``) or a text comparison that failed on wording alone. It is
never asked about a fact of the structure: deleted versions, versions superseded, ranks, graphs,
the values that a write or a read names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memtrace_collector.attribution.carrying.needs import Item, Need

CARRIES = "carries"
"""Does this value give the needed item?"""
ANSWERS = "answers"
"""Does this reply give what was expected?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One thing that the texts leave open about one value.

    ``subject`` are the words that tie a sentence of the value to the need; ``leaning`` is what
    the rules take it for when nobody answers; ``said_on`` the day its relative words count from
    (ISO 8601, empty: unknown); ``is_upstream_known``: the evidence for the item is known, so
    that it need not be looked for among what was said.
    """

    kind: str
    need: Need
    item: Item
    ref: str
    content: str
    subject: frozenset[str]
    leaning: bool | None = None
    said_on: str = ""
    is_upstream_known: bool = False
    sources: tuple[str, ...] = ()
    """Texts that carry the item at the beginning."""
    is_near: bool = False
    """The value was made from the evidence, or was before the answer's own reads."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Equal for the same question about equal texts of equal time."""
        return self.kind, self.item.text or self.need.expected, self.content, self.said_on


class Judgements(Protocol):
    """Answers to doubts; ``None`` leaves a doubt to the rules. Deterministic while one verdict
    is made: the same doubt gets the same answer."""

    @property
    def is_open(self) -> bool:
        """False: nobody answers, and the rules need not word their doubts."""
        ...

    def judge(self, doubt: Doubt, /) -> bool | None:
        """Yes, no, or not known."""
        ...

    def certain(self, item: Item, ref: str) -> None:
        """The rules found, without help, that this value carries the item."""
        ...


class NoJudgements:
    """Nobody to ask: the rules alone."""

    @property
    def is_open(self) -> bool:
        return False

    def judge(self, _: Doubt) -> bool | None:
        """Leave it to the rules."""
        return None

    def certain(self, item: Item, ref: str) -> None:
        """Forget it."""


NO_JUDGEMENTS: Judgements = NoJudgements()
