"""What a batch of facts comes to, before any of it meets what is stored. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph import merge
from memtrace_collector.graph.facts import Flag, Operation, SpanFacts, Value
from memtrace_collector.graph.reader import SequenceNumber
from memtrace_collector.log.position import LogPosition


class TimedValue(NamedTuple):
    """``at_ns``: the latest start of an operation that came with it; 0 when there was none."""

    value: Value
    at_ns: int


@dataclass(slots=True)
class Gathered:
    """Operations in the order they came; of the rest what wins, by key."""

    operations: list[tuple[LogPosition, Operation]] = field(default_factory=list)
    values: dict[tuple[str, str, str], TimedValue] = field(default_factory=dict)
    """By tenant, graph and reference."""
    flags: dict[tuple[str, str], Flag] = field(default_factory=dict)
    """By tenant and origin."""
    numbers: dict[tuple[str, str, int], SequenceNumber] = field(default_factory=dict)
    """By tenant, process and number."""

    def add(self, position: LogPosition, facts: SpanFacts) -> None:
        operation = facts.operation
        if operation is not None:
            self.operations.append((position, operation))
            if operation.sequence is not None:
                number = SequenceNumber(*operation.sequence, operation.start_ns, operation.end_ns)
                self._add_number(operation.tenant, number)
        for value in facts.values:
            self._add_value(value, 0 if operation is None else operation.start_ns)
        for flag in facts.flags:
            key = (flag.tenant, flag.origin)
            known = self.flags.get(key)
            if known is None or merge.flag_wins(flag, known):
                self.flags[key] = flag
        if facts.farewell is not None:
            at = facts.farewell_ns
            self._add_number(facts.tenant, SequenceNumber(*facts.farewell, at, at, farewell=True))

    def _add_value(self, value: Value, at_ns: int) -> None:
        key = (value.tenant, value.graph_id, value.ref)
        known = self.values.get(key)
        if known is not None:
            at_ns = max(at_ns, known.at_ns)
            value = value if merge.value_wins(value, known.value) else known.value
        self.values[key] = TimedValue(value, at_ns)

    def _add_number(self, tenant: str, number: SequenceNumber) -> None:
        key = (tenant, number.process, number.number)
        known = self.numbers.get(key)
        self.numbers[key] = number if known is None else merge.join_numbers(number, known)


def gather(batch: Iterable[tuple[LogPosition, SpanFacts]]) -> Gathered:
    """All of a batch."""
    gathered = Gathered()
    for position, facts in batch:
        gathered.add(position, facts)
    return gathered
