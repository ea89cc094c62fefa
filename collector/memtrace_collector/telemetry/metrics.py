"""How the stages report what they did and what they lost, without knowing who collects it.

Every name and attribute is in :mod:`memtrace_collector.telemetry.catalog`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Exemplar(NamedTuple):
    """The span that shows what was counted, in lower-case hex: from a number to its trace."""

    trace_id: str
    span_id: str


class Distribution(NamedTuple):
    """Values as a histogram counts them, in the unit of its metric.

    ``counts``: one for each bucket, and one for what is above the last.
    """

    counts: tuple[int, ...]
    sum: float
    least: float
    greatest: float


class Metrics(Protocol):
    """Counters, which only grow, and histograms. Implementations are thread-safe, never raise."""

    def add(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        """Add ``value`` to the counter ``name`` of this set of attributes."""
        ...

    def record(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        """Put one value into the histogram ``name``."""
        ...

    def merge(self, name: str, values: Distribution, /, **attributes: str) -> None:
        """Put many values, counted elsewhere by the same buckets, into the histogram ``name``."""
        ...


class NullMetrics:
    """Counts nothing: the default where nobody listens."""

    def add(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        """Forget it."""

    def record(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        """Forget it."""

    def merge(self, name: str, values: Distribution, /, **attributes: str) -> None:
        """Forget them."""


NULL_METRICS: Metrics = NullMetrics()
