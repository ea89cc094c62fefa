"""The demo's data: dialogue excerpt, handbook, questions and the faults planted for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
EXCERPT = DATA / "excerpt.json"
HANDBOOK = DATA / "handbook.json"
CASES = DATA / "cases.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """What the stand-in model does wrong for one question, and at which operation.

    ``step`` is the operation's step; ``message`` the id of the message from whose ``add`` the
    operation comes (empty: the operation belongs to the question itself). ``fault`` is the
    instruction to the model (see :mod:`memtrace_collector.demo.faults`).
    """

    stage: str
    error_type: str
    step: str
    message: str = ""
    fault: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question with its expected answer; ``evidence`` are message ids."""

    id: str
    question: str
    expected: str
    evidence: tuple[str, ...]
    planted: Planted | None

    @property
    def evidence_references(self) -> tuple[str, ...]:
        """The evidence as references whose version is not known to the asker."""
        return tuple(f"msg:{message}@?" for message in self.evidence)


@cache
def questions() -> tuple[Question, ...]:
    """All questions, in the order in which they are asked."""
    return tuple(_question(item) for item in json.loads(CASES.read_text("utf-8"))["cases"])


def _question(item: dict[str, Any]) -> Question:
    planted = item["planted"]
    return Question(
        id=item["id"],
        question=item["question"],
        expected=item["expected"],
        evidence=tuple(item["evidence"]),
        planted=Planted(**planted) if planted else None,
    )
