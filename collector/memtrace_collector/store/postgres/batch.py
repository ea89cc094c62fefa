"""What a batch of facts says, each key once. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from memtrace_collector.graph import merge
from memtrace_collector.graph.facts import Flag, Operation, SpanFacts, Value
from memtrace_collector.graph.reader import SequenceNumber
from memtrace_collector.log.position import LogPosition

SpanKey = tuple[str, str, str]
"""Tenant, trace id, span id."""
Sighting = tuple[LogPosition, Operation]


@dataclass(slots=True)
class Batch:
    """Every sighting of an operation, in order; of all else what wins within the batch."""

    operations: dict[SpanKey, list[Sighting]] = field(default_factory=lambda: defaultdict(list))
    values: dict[tuple[str, str, str], Value] = field(default_factory=dict)
    """By tenant, graph and reference."""
    value_times: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """The latest start of an operation that came with each value; 0: it came with none."""
    flags: dict[tuple[str, str], Flag] = field(default_factory=dict)
    """By tenant and origin."""
    numbers: dict[tuple[str, str, int], SequenceNumber] = field(default_factory=dict)
    """By tenant, process and number."""
    graphs: set[tuple[str, str]] = field(default_factory=set)
    """Tenant and name of every graph that is written to."""


def gather(facts: Iterable[tuple[LogPosition, SpanFacts]]) -> Batch:
    batch = Batch()
    for position, item in facts:
        if item.operation is not None:
            operation = item.operation
            key = (operation.tenant, operation.trace_id, operation.span_id)
            batch.operations[key].append((position, operation))
            batch.graphs.add((operation.tenant, operation.graph_id))
            _take_number(batch.numbers, operation)
        for value in item.values:
            batch.graphs.add((value.tenant, value.graph_id))
        _take_values(batch, item)
        _take_flags(batch.flags, item.flags)
        _take_farewell(batch.numbers, item)
    return batch


def _take_values(batch: Batch, facts: SpanFacts) -> None:
    at_ns = 0 if facts.operation is None else facts.operation.start_ns
    for value in facts.values:
        key = (value.tenant, value.graph_id, value.ref)
        known = batch.values.get(key)
        if known is None or merge.value_wins(value, known):
            batch.values[key] = value
        batch.value_times[key] = max(at_ns, batch.value_times.get(key, 0))


def _take_flags(taken: dict[tuple[str, str], Flag], flags: Iterable[Flag]) -> None:
    for flag in flags:
        key = (flag.tenant, flag.origin)
        known = taken.get(key)
        if known is None or merge.flag_wins(flag, known):
            taken[key] = flag


def _take_number(numbers: dict[tuple[str, str, int], SequenceNumber], operation: Operation) -> None:
    if operation.sequence is not None:
        number = SequenceNumber(*operation.sequence, operation.start_ns, operation.end_ns)
        _join_number(numbers, operation.tenant, number)


def _take_farewell(numbers: dict[tuple[str, str, int], SequenceNumber], facts: SpanFacts) -> None:
    if facts.farewell is not None:
        at = facts.farewell_ns
        number = SequenceNumber(*facts.farewell, at, at, farewell=True)
        _join_number(numbers, facts.tenant, number)


def _join_number(
    numbers: dict[tuple[str, str, int], SequenceNumber], tenant: str, number: SequenceNumber
) -> None:
    key = (tenant, number.process, number.number)
    known = numbers.get(key)
    numbers[key] = number if known is None else merge.join_numbers(number, known)
