"""What a metric is: its names, its unit, its attributes, and who tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from memtrace_collector.telemetry.attribute_values import Values

Kind = Literal["counter", "histogram", "gauge"]
Teller = Literal["process", "fleet"]
"""``process``: each process tells of itself; the sum is that of all. ``fleet``: of stores that
processes may share, told only by `up` and `serve`; each tells the same, so that of several
`serve` one must be taken (``max``), not the sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. ``bounds``: upper bounds of a histogram's buckets, in its unit, rising."""

    name: str
    kind: Kind
    unit: str
    description: str
    attributes: Mapping[str, Values] = field(default_factory=dict)
    bounds: tuple[float, ...] = ()
    teller: Teller = "process"

    @property
    def prometheus(self) -> str:
        """The name in Prometheus; a histogram's series add ``_bucket``, ``_sum``, ``_count``."""
        suffix = _PROMETHEUS_UNITS.get(self.unit, "")
        name = self.name.replace(".", "_")
        if suffix and not name.endswith(suffix):
            name += suffix
        return f"{name}_total" if self.kind == "counter" else name


_PROMETHEUS_UNITS = {"s": "_seconds", "By": "_bytes"}


def counter(name: str, unit: str, description: str, **attributes: Values) -> Metric:
    """What happened, added up; it only grows."""
    return Metric(
        name=name, kind="counter", unit=unit, description=description, attributes=attributes
    )


def gauge(name: str, unit: str, description: str, **attributes: Values) -> Metric:
    """What is now, of this process."""
    return Metric(
        name=name, kind="gauge", unit=unit, description=description, attributes=attributes
    )


def fleet_gauge(name: str, unit: str, description: str, **attributes: Values) -> Metric:
    """What is now, of all processes over the same stores."""
    return replace(gauge(name, unit, description, **attributes), teller="fleet")


def histogram(
    name: str, unit: str, description: str, bounds: tuple[float, ...], **attributes: Values
) -> Metric:
    """How what happened is distributed."""
    return Metric(
        name=name,
        kind="histogram",
        unit=unit,
        description=description,
        attributes=attributes,
        bounds=bounds,
    )
