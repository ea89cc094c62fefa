"""Settings of the model that is asked: which, where, how long, and how much at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from memtrace_collector.errors import ConfigError

KEY_VARIABLE = "MEMTRACE_MODEL_API_KEY"
"""Where the key is read from, and only there: it is no setting, so that no file holds it."""
COMMON_KEY_VARIABLE = "OPENAI_API_KEY"
"""Used where no ``base_url`` is set: a key for one service is not sent to another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A model behind an OpenAI-compatible endpoint. Times in seconds; prices and costs in one
    currency, prices per million tokens; limits of 0 are none (calls and tokens: nothing)."""

    name: str = ""
    """Empty: no model is asked."""
    base_url: str = ""
    timeout_seconds: float = 30.0
    retries: int = 2
    concurrency: int = 4
    cut: float = 0.7
    """``auto`` asks where the rules' score is below."""
    case_calls: int = 12
    case_tokens: int = 2_000
    case_cost: float = 0.0
    agent_steps: int = 24
    """Replies of the model in one exploration by ``agent``."""
    agent_tokens: int = 200_000
    agent_seconds: float = 300.0
    run_calls: int = 5_000
    run_tokens: int = 5_000_000
    run_cost: float = 0.0
    """Of one command, or one day of a service."""
    prompt_price: float = 0.0
    completion_price: float = 0.0
    embeddings: str = ""
    """Embedding model: a name at the endpoint, or ``local:PATH`` of a sentence-transformers
    model. Empty: texts are compared by words alone."""

    def validate(self) -> None:
        """Raise ConfigError for the first setting that cannot be."""
        _check("timeout_seconds", 0 < self.timeout_seconds <= 600, "more than 0, at most 600")
        _check("retries", 0 <= self.retries <= 10, "0 to 10")
        _check("concurrency", 1 <= self.concurrency <= 64, "1 to 64")
        _check("cut", 0 <= self.cut <= 1, "0 to 1")
        _check("agent_seconds", 0 < self.agent_seconds <= 3_600, "more than 0, at most 3600")
        counts = ("case_calls", "case_tokens", "agent_steps", "agent_tokens")
        for name in (*counts, "run_calls", "run_tokens"):
            _check(name, getattr(self, name) >= 0, "0 or more")
        for name in ("case_cost", "run_cost", "prompt_price", "completion_price"):
            _check(name, getattr(self, name) >= 0, "0 or more")
        if (self.case_cost or self.run_cost) and not (self.prompt_price or self.completion_price):
            raise ConfigError(
                "model.case_cost, model.run_cost: a limit in money needs model.prompt_price and "
                "model.completion_price"
            )
        if self.base_url:
            parts = urlsplit(self.base_url)
            _check(
                "base_url",
                parts.scheme in ("http", "https") and bool(parts.hostname),
                "a URL such as http://localhost:11434/v1",
            )


def key_for(config: ModelConfig, environment: Mapping[str, str]) -> str:
    """The key to send, from the environment; empty: none."""
    own = environment.get(KEY_VARIABLE, "")
    return own or ("" if config.base_url else environment.get(COMMON_KEY_VARIABLE, ""))


def _check(name: str, holds: bool, expected: str) -> None:
    if not holds:
        raise ConfigError(f"model.{name}: expected {expected}")
