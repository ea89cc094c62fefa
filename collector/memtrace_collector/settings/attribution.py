"""Settings of how flagged answers are looked into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memtrace_collector.errors import ConfigError
from memtrace_collector.settings.checks import check, check_endpoint
from memtrace_collector.settings.model import ModelConfig

METHODS = ("rules", "auto", "model", "agent")
MAX_REPLAY_RUNS = 20
METHODS_WITH_MODEL = ("auto", "model", "agent")
FLAGGING_INVARIANTS = ("stale", "zombie", "foreign", "flapping", "empty_retrieval")
"""Those whose findings can reach an answer; a write that never happened reaches none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionConfig:
    """How flagged answers are looked into."""

    method: str = "rules"
    interval_seconds: float = 1.0
    """Pause between two looks for flagged answers without a verdict."""
    settle_seconds: float = 300.0
    """How long an answer is waited for whose lineage has gaps or unknown producers."""
    cases_per_minute: int = 6_000
    concurrency: int = 1
    """Cases looked at at the same time."""
    max_attempts: int = 3
    """A case that failed so often is set aside."""
    flag_invariants: tuple[str, ...] = ()
    """Broken invariants that flag the answers they reached: of :data:`FLAGGING_INVARIANTS`."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Evaluation name -> least passing score; a lower ``gen_ai.evaluation.result`` flags."""
    replay: bool = False
    """Test every verdict by a replay, also in the background."""
    replay_runs: int = 3
    """How often each prompt of a replay is asked."""
    replay_model: str = ""
    """Model of replays; empty: the one that the answer's span names."""
    replay_url: str = ""
    """OpenAI-compatible endpoint of replays; empty: ``OPENAI_BASE_URL``, else no model is asked."""
    replay_calls: int = 600
    """Calls that replays may make, per command or per day of a service."""

    def validate(self) -> None:
        check_method(self.method)
        check_replay_runs(self.replay_runs)
        check("attribution.replay_calls", self.replay_calls >= 1, "at least 1")
        if self.replay_url:
            check_endpoint("attribution.replay_url", self.replay_url)
        check("attribution.interval_seconds", 0 < self.interval_seconds <= 3600, "0 to 3600")
        check("attribution.settle_seconds", 0 <= self.settle_seconds <= 86_400, "0 to 86400")
        check("attribution.cases_per_minute", self.cases_per_minute >= 1, "at least 1")
        check("attribution.concurrency", 1 <= self.concurrency <= 64, "1 to 64")
        check("attribution.max_attempts", 1 <= self.max_attempts <= 100, "1 to 100")
        unknown = set(self.flag_invariants) - set(FLAGGING_INVARIANTS)
        check("attribution.flag_invariants", not unknown, f"of {', '.join(FLAGGING_INVARIANTS)}")


def check_method(method: str) -> None:
    """Refuse a method of attribution that does not exist."""
    check("attribution.method", method in METHODS, " or ".join(METHODS))


def check_model(method: str, model: ModelConfig) -> None:
    """Refuse a method that asks a model where none is named."""
    if method in METHODS_WITH_MODEL and not model.name:
        raise ConfigError(
            f"the method {method} asks a model: name one with --model (MEMTRACE_MODEL, "
            "model.name), and where it is with --base-url; or use --method rules"
        )


def check_replay_runs(runs: int) -> None:
    """Refuse a number of runs of a replay that is no use or too dear."""
    check("attribution.replay_runs", 1 <= runs <= MAX_REPLAY_RUNS, f"1 to {MAX_REPLAY_RUNS}")
