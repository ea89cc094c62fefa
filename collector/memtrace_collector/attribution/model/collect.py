"""The doubts that the rules had about one case, and which of them to ask first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memtrace_collector.attribution.carrying.judgements import ANSWERS, Doubt
from memtrace_collector.attribution.carrying.needs import Item
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.texts import text
from memtrace_otel import semconv

MAX_ASKED = 3
"""Values of one hop that are asked about."""
MAX_DOUBTS = 10_000
"""Kept per case; of more, those met first."""
_HOPS = {
    semconv.KIND_MESSAGE: 1,
    semconv.KIND_FACT: 2,
    semconv.KIND_DOCUMENT: 3,
    semconv.KIND_MEMORY: 3,
}
_TOLD, _EXTRACTED, _LAST_HOP = 1, 2, 4

Key = tuple[str, str, str, str]


@dataclass
class Collected:
    """Judgements as far as they are known; what is asked beyond them is noted."""

    answers: Mapping[Key, bool | None]
    doubts: dict[Key, Doubt] = field(default_factory=dict)
    carried: set[tuple[str, int]] = field(default_factory=set)
    """Item and hop of which the rules know a carrier without help."""
    used: set[Key] = field(default_factory=set)

    @property
    def is_open(self) -> bool:
        return True

    def judge(self, doubt: Doubt) -> bool | None:
        """The answer known, else None; then the doubt is noted."""
        key = doubt.key
        if key in self.answers:
            answer = self.answers[key]
            if answer is not None and answer is not doubt.leaning:
                self.used.add(key)
            return answer
        known = self.doubts.get(key)
        if (known is None and len(self.doubts) < MAX_DOUBTS) or (
            known is not None and doubt.is_upstream_known
        ):
            self.doubts[key] = doubt
        return None

    def certain(self, item: Item, ref: str) -> None:
        """Note the hop at which the item has a carrier."""
        self.carried.add((item.text, _HOPS.get(kind(ref), _LAST_HOP)))

    def first_doubts(self, *, leaning_too: bool) -> list[Doubt]:
        """The doubts of the first doubtful hop, nearest to the need first; where some are about
        values made from the evidence or before the answer's reads, only of those.

        Args:
            leaning_too: also where the rules read a no of which only the wording is in doubt.
        """
        for wanted in (None, False) if leaning_too else (None,):
            relevant = [
                doubt
                for doubt in self.doubts.values()
                if doubt.leaning is wanted and self._matters(doubt)
            ]
            if relevant:
                near = [doubt for doubt in relevant if doubt.is_near] or relevant
                first = min(map(_hop, near))
                of_hop = [doubt for doubt in near if _hop(doubt) == first]
                return sorted(of_hop, key=_distance)[:MAX_ASKED]
        return []

    def _matters(self, doubt: Doubt) -> bool:
        """One carrier is enough for what was told and extracted; a record has to have it still."""
        hop = _hop(doubt)
        if hop == _TOLD and doubt.is_upstream_known:
            return False
        return not is_enough(doubt) or (doubt.item.text, hop) not in self.carried


def is_enough(doubt: Doubt) -> bool:
    """Whether one carrier settles the hop of a doubt: not among records, which may change."""
    return _hop(doubt) in (_TOLD, _EXTRACTED)


def _hop(doubt: Doubt) -> int:
    return 0 if doubt.kind == ANSWERS else _HOPS.get(kind(doubt.ref), _LAST_HOP)


def _distance(doubt: Doubt) -> tuple[int, int, int]:
    tokens = text.content_tokens(doubt.content)
    return (
        -len(tokens & doubt.item.tokens),
        -len(tokens & doubt.subject),
        len(doubt.content),
    )
