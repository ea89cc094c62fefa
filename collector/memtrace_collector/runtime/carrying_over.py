"""What a log can no longer give, out of the facts that were made from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.graph.facts import Operation, SpanFacts, Value
from memtrace_collector.graph.facts import Sequence as Numbered
from memtrace_collector.graph.references import used_by
from memtrace_collector.log.beginning import read_beginning
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import Damage, read
from memtrace_collector.store.base import FactStore

_BATCH = 1_000
_Batch = list[tuple[LogPosition, SpanFacts]]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The places of a log that cannot be read any more: before its beginning, and damage."""

    beginning: LogPosition = START
    damages: Sequence[Damage] = ()

    def __bool__(self) -> bool:
        return self.beginning > START or bool(self.damages)

    def holds(self, position: LogPosition) -> bool:
        return position < self.beginning or any(
            damage.position <= position < damage.next for damage in self.damages
        )


class Scanned(NamedTuple):
    """What a log holds, without looking into it."""

    records: int
    tenants: frozenset[str]
    unreadable: Unreadable


@dataclass(slots=True)
class CarriedOver:
    """``lost``: graphs that the old store could not give."""

    operations: int = 0
    lost: list[str] = field(default_factory=list)


def scan(log_folder: Path, seen: Callable[[LogPosition], None]) -> Scanned:
    """Read a log through; ``seen`` hears now and then how far."""
    damages: list[Damage] = []
    tenants: set[str] = set()
    records = 0
    for entry in read(log_folder, START, damages.append, lambda _: None):
        records += 1
        tenants.add(entry.record.tenant)
        if records % _BATCH == 0:
            seen(entry.position)
    unreadable = Unreadable(read_beginning(log_folder), tuple(damages))
    return Scanned(records, frozenset(tenants), unreadable)


def carry_over(
    old: FactStore, new: FactStore, tenants: Iterable[str], unreadable: Unreadable
) -> CarriedOver:
    """Apply to ``new`` what ``old`` has from places that cannot be read, and what has no place."""
    carried = CarriedOver()
    end = new.cursor()
    for tenant in tenants:
        facts = old.for_tenant(tenant)
        for summary in facts.graphs():
            count = _carry_graph(facts, new, summary.graph_id, unreadable, end)
            carried.operations += count or 0
            carried.lost += [] if count is not None else [summary.graph_id]
        flags = tuple(facts.flags())
        new.apply([(START, SpanFacts(tenant=tenant, flags=flags))], end)
    return carried


def _carry_graph(
    old: FactStore, new: FactStore, graph_id: str, unreadable: Unreadable, end: LogPosition
) -> int | None:
    """How many operations; None where the old store could not give them all."""
    count = 0
    try:
        for operations in _in_batches(old.all_operations(graph_id)):
            places = old.first_position([operation.key for operation in operations])
            gone = [(places.get(o.key, START), o) for o in operations]
            gone = [(place, o) for place, o in gone if unreadable.holds(place)]
            if gone:
                new.apply([(place, each) for place, o in gone for each in _facts(old, o)], end)
            count += len(gone)
    except sqlite3.DatabaseError:
        return None
    return count


def _facts(old: FactStore, operation: Operation) -> Iterator[SpanFacts]:
    """An operation with the values of what it names, and the end of its process's numbers."""
    refs = {*operation.outputs, *used_by(operation)}
    values: tuple[Value, ...] = tuple(old.values(operation.graph_id, refs).values())
    yield SpanFacts(tenant=operation.tenant, operation=operation, values=values)
    if operation.sequence is None:
        return
    for number in old.sequence([operation.sequence.process]).get(operation.sequence.process, []):
        if number.farewell:
            farewell = Numbered(number.process, number.number)
            yield SpanFacts(tenant=operation.tenant, farewell=farewell, farewell_ns=number.end_ns)


def _in_batches(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    batch: list[Operation] = []
    for operation in operations:
        batch.append(operation)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
