"""How well a text fits a question: the question's words that it has, weighted by rarity. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.said import said_before
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.texts import text
from memtrace_otel import semconv

_WHOLE = 0.2
"""What the rest of a text adds to its best sentence."""
_STORED = (semconv.KIND_FACT, semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)


@dataclass(frozen=True)
class Bearing:
    """Rates texts against one question, from 0 (no word of it) to 1 (all its words in one
    sentence). A word that stands in few sentences of the case weighs more; one that stands
    nowhere weighs as much as the rarest.
    """

    view: View
    question: frozenset[str]

    @cached_property
    def values(self) -> dict[str, str]:
        """Everything said or stored before the answer that can be read, by reference."""
        made = [
            ref
            for op in self.view.operations
            if self.view.before(op) and self.view.readable(op)
            for ref in op.outputs
            if kind(ref) in _STORED
        ]
        known = dict.fromkeys([*said_before(self.view), *made, *self.view.current_versions])
        return {ref: said for ref in known if (said := self.view.text(ref))}

    @cached_property
    def _weights(self) -> dict[str, float]:
        parts = [
            text.content_tokens(part)
            for said in self.values.values()
            for part in text.sentences(said)
        ]
        counts = Counter(token for part in parts for token in part & self.question)
        known = {token: math.log1p(len(parts) / count) for token, count in counts.items()}
        rarest = max(known.values(), default=1.0)
        return {token: known.get(token, rarest) for token in self.question}

    def share(self, tokens: frozenset[str]) -> float:
        """The weighted share of the question's words among these."""
        whole = sum(self._weights.values())
        return sum(self._weights[token] for token in self.question & tokens) / (whole or 1.0)

    def of(self, said: str) -> float:
        """How well a text fits: its best sentence, and a little its other words."""
        parts = [text.content_tokens(part) for part in text.sentences(said)]
        if not parts:
            return 0.0
        best = max(map(self.share, parts))
        return (1 - _WHOLE) * best + _WHOLE * self.share(frozenset().union(*parts))

    def of_ref(self, ref: str) -> float:
        """How well a value fits; 0 when its text is not known."""
        if ref not in self._rated:
            self._rated[ref] = self.of(self.view.text(ref) or "")
        return self._rated[ref]

    @cached_property
    def _rated(self) -> dict[str, float]:
        return {}

    @cached_property
    def in_context(self) -> float:
        """How well the best item of the answer's context fits."""
        shown = [ref for ref in self.view.shown if self.view.text(ref)]
        if shown:
            return max(map(self.of_ref, shown))
        asked = self.view.question or ""
        lines = [
            line
            for ref in self.view.contexts
            for line in (self.view.text(ref) or "").split("\n")
            if asked not in line  # a prompt repeats the question
        ]
        return max(map(self.of, lines), default=0.0)

    def best(self, refs: Sequence[str]) -> tuple[float, str] | None:
        """The value that fits best, with how well; of equals the first."""
        rated = [(self.of_ref(ref), -place, ref) for place, ref in enumerate(refs)]
        if not rated:
            return None
        share, _, ref = max(rated)
        return share, ref
