"""What the demo found, case by case: its JSON form, its table, whether it is as planted."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memtrace_collector.commands.output import plain
from memtrace_collector.demo.cases import Question
from memtrace_collector.demo.truth import Recorded

NO_MEMORY_FAULT = ("not_memory", "unknown")
"""The stages that a verdict on a right answer may have."""
_COLUMNS = (
    ("QUESTION", 26),
    ("EXPECTED", 16),
    ("ANSWERED", 26),
    ("VERDICT", 18),
    ("DECISIVE OPERATION", 20),
    ("WHY", 44),
)
_TOLD_WRONG = "!"
_TOLD_RIGHT = " "


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question, its answer, the planted fault's operation and the verdict."""

    question: Question
    answered: str
    answer: Recorded
    planted: Recorded | None
    """Where the fault was planted; None when none was."""
    verdict: Mapping[str, Any] | None
    decisive: tuple[Recorded, ...] = ()

    def is_as_planted(self) -> bool:
        """The verdict names the planted stage and operation, or no memory fault if none was."""
        if self.verdict is None:
            return False
        if self.planted is None or self.question.planted is None:
            return self.verdict["stage"] in NO_MEMORY_FAULT
        named = self.verdict["decisive"][0] if self.verdict["decisive"] else {}
        return (
            self.verdict["stage"] == self.question.planted.stage
            and named.get("traceId") == self.planted.trace_id
            and named.get("spanId") == self.planted.span_id
        )

    def to_json(self) -> dict[str, Any]:
        fault = self.question.planted
        return {
            "id": self.question.id,
            "question": self.question.question,
            "expected": self.question.expected,
            "answered": self.answered,
            "answer": self.answer.span,
            "planted": {
                "operation": self.planted.span,
                "stage": fault.stage,
                "error_type": fault.error_type,
            }
            if self.planted and fault
            else None,
            "verdict": self.verdict,
        }


def table(outcomes: Iterable[Outcome], *, judged: bool) -> str:
    """All outcomes as a table; with ``judged``, a mark before those not as planted."""
    rule = "  ".join("-" * width for _, width in _COLUMNS)
    lines = [_line([title for title, _ in _COLUMNS], _TOLD_RIGHT), f"  {rule}"]
    for outcome in outcomes:
        mark = _TOLD_WRONG if judged and not outcome.is_as_planted() else _TOLD_RIGHT
        lines += [*_rows(outcome, mark), ""]
    return "\n".join(lines)


def _rows(outcome: Outcome, mark: str) -> list[str]:
    verdict = outcome.verdict or {"stage": "-", "error_type": "none yet", "explanation": ""}
    cells = (
        outcome.question.question,
        outcome.question.expected,
        outcome.answered,
        f"{verdict['stage']} / {verdict['error_type']}",
        "; ".join(_operation(item) for item in outcome.decisive) or "-",
        str(verdict["explanation"]),
    )
    wrapped = [
        textwrap.wrap(plain(" ".join(text.split())), width) or [""]
        for text, (_, width) in zip(cells, _COLUMNS)
    ]
    height = max(map(len, wrapped))
    rows = [[cell[i] if i < len(cell) else "" for cell in wrapped] for i in range(height)]
    return [_line(row, mark if i == 0 else " ") for i, row in enumerate(rows)]


def _operation(item: Recorded) -> str:
    service = item.service.rpartition("-")[2] or item.service
    return f"{item.name} of the {service}, trace {item.trace_id[:8]} span {item.span_id}"


def _line(cells: Sequence[str], mark: str) -> str:
    padded = (cell.ljust(width) for cell, (_, width) in zip(cells, _COLUMNS))
    return f"{mark} {'  '.join(padded)}".rstrip()
