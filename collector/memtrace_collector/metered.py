"""Counting operations by system and step on their way into the store."""

from __future__ import annotations

from collections import Counter

from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.position import LogPosition
from memtrace_collector.metrics import Metrics
from memtrace_collector.store.base import Applied, FactStore
from memtrace_otel import semconv

MAX_SYSTEMS = 50
"""Senders name their system: beyond so many names the rest is counted as ``other``."""

_STEPS = frozenset(semconv.SPAN_NAMES)


class MeteredStore:
    """A projection's view of a fact store; counts each operation when it is first seen."""

    def __init__(self, facts: FactStore, metrics: Metrics) -> None:
        self._facts = facts
        self._metrics = metrics
        self._systems: set[str] = set()

    def apply(self, batch: list[tuple[LogPosition, SpanFacts]], cursor: LogPosition) -> Applied:
        operations = {item.operation.key: item.operation for _, item in batch if item.operation}
        new = operations.keys() - self._facts.first_position(operations).keys()
        applied = self._facts.apply(batch, cursor)
        counts = Counter((operations[key].system, operations[key].step) for key in new)
        for (system, step), count in counts.items():
            self._metrics.add(
                "memtrace.operations", count, system=self._system(system), step=_step(step)
            )
        return applied

    def cursor(self, name: str = "projection") -> LogPosition:
        return self._facts.cursor(name)

    def set_cursor(self, name: str, position: LogPosition) -> None:
        self._facts.set_cursor(name, position)

    def _system(self, name: str) -> str:
        if name not in self._systems and len(self._systems) >= MAX_SYSTEMS:
            return "other"
        self._systems.add(name)
        return name or "unknown"


def _step(name: str) -> str:
    return name if name in _STEPS else "other"
