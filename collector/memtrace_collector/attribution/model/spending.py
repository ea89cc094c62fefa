"""What our metrics say of an answered call."""

from __future__ import annotations

from memtrace_collector.attribution.model.budget import Usage
from memtrace_collector.telemetry.metrics import Metrics


def tell(metrics: Metrics, used: Usage, cost: float) -> None:
    """Count a call, its tokens and its ``cost`` (0 where prices are not set)."""
    metrics.add("memtrace.model.calls", 1)
    metrics.add("memtrace.model.tokens", used.prompt, type="input")
    metrics.add("memtrace.model.tokens", used.completion, type="output")
    metrics.add("memtrace.model.cost", cost)
