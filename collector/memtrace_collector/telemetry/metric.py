"""What a metric is: its names, its unit, its attributes, and who tells of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from memtrace_collector.telemetry.attribute_values import Values

FEW = 10
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
        parts = [self.name.replace(".", "_"), self.prometheus_unit]
        if self.kind == "counter":
            parts.append("total")
        return "_".join(part for part in parts if part)

    @property
    def prometheus_unit(self) -> str:
        """The unit in Prometheus' words; empty for one that merely says what is counted."""
        return _PROMETHEUS_UNITS.get(self.unit, "")

    def few(self) -> list[dict[str, str]]:
        """Every set of attributes, where there are at most :data:`FEW`; else none. A counter
        starts at 0 for them, so that the first event shows as growth."""
        closed = [values for values in self.attributes.values() if isinstance(values, frozenset)]
        if len(closed) < len(self.attributes) or math.prod(map(len, closed)) > FEW:
            return []
        return [dict(zip(self.attributes, values)) for values in itertools.product(*closed)]


_PROMETHEUS_UNITS = {"s": "seconds", "By": "bytes"}


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
