"""How the stages report what they did and what they lost, without knowing who collects it."""

from __future__ import annotations

from typing import Protocol


class Metrics(Protocol):
    """Monotonic counters. Implementations are thread-safe and never raise."""

    def add(self, name: str, value: int, **attributes: str) -> None:
        """Add ``value`` to the counter ``name`` of this set of attributes."""
        ...


class NullMetrics:
    """Counts nothing: the default where nobody listens."""

    def add(self, name: str, value: int, **attributes: str) -> None:
        """Forget it."""


NULL_METRICS: Metrics = NullMetrics()
