"""Keeps what is reported within the catalogue: no unknown name, no unbounded attribute."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Mapping

from memtrace_collector.telemetry.attribute_values import OTHER, UNKNOWN, Names, Values
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.metric import Kind, Metric

logger = logging.getLogger(__name__)


class Bounds:
    """Knows which names senders gave so far: of each kind of name the first so many stay."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: defaultdict[Names, set[str]] = defaultdict(set)
        self._refused: set[str] = set()

    def metric(self, name: str, kind: Kind, attributes: Mapping[str, str]) -> Metric | None:
        """The metric of that name, if it is of that kind and has these attributes; what it has
        not is a fault of ours, said once in the log and not counted."""
        metric = METRICS.get(name)
        if metric and metric.kind == kind and attributes.keys() == metric.attributes.keys():
            return metric
        if name not in self._refused and len(self._refused) <= len(METRICS):
            self._refused.add(name)
            said = f"{name} {{{', '.join(attributes)}}}"
            logger.error("the %s %s is not in the catalogue and is not counted", kind, said)
        return None

    def within(self, metric: Metric, attributes: Mapping[str, str]) -> dict[str, str]:
        """The attributes with values that the catalogue allows, in its order."""
        return {
            name: self._value(allowed, attributes[name])
            for name, allowed in metric.attributes.items()
        }

    def _value(self, allowed: Values, value: str) -> str:
        if not isinstance(allowed, Names):
            return value if value in allowed else OTHER
        return self._name(allowed, value) if value else UNKNOWN

    def _name(self, allowed: Names, value: str) -> str:
        seen = self._seen[allowed]
        if value in seen:
            return value
        with self._lock:
            if len(seen) >= allowed.limit or not allowed.pattern.fullmatch(value):
                return OTHER
            seen.add(value)
        return value
