"""What an agent asked and was told, kept with its verdict, bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from memtrace_collector.attribution.model.budget import Usage

MAX_KEPT_STEPS = 40
MAX_KEPT_CHARS = 2_000
"""Of what was sent anew in one step, and of what was said in it."""


@dataclass
class Transcript:
    """``stopped``: why the exploration ended before it was concluded; empty when it was."""

    model: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    stopped: str = ""

    def add(self, told: Sequence[str], said: str, usage: Usage) -> None:
        """One step: what the model was told since the one before, and its reply."""
        self.count += 1
        self.prompt_tokens += usage.prompt
        self.completion_tokens += usage.completion
        if len(self.steps) < MAX_KEPT_STEPS:
            self.steps.append(
                {
                    "kind": "agent",
                    "ref": None,
                    "prompt": _shortened("\n\n".join(told)),
                    "reply": _shortened(said),
                    "tokens": asdict(usage),
                }
            )

    def to_json(self, cost: float) -> dict[str, Any]:
        """For the verdict, in the form of all that a model was asked."""
        return {
            "model": self.model,
            "calls": self.count,
            "tokens": {"prompt": self.prompt_tokens, "completion": self.completion_tokens},
            "cost": round(cost, 6),
            "stopped": self.stopped or None,
            "asked": self.steps,
        }


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_KEPT_CHARS else f"{text[: MAX_KEPT_CHARS - 1]}…"
