"""One batch of facts into SQLite, in one transaction: the writing half of the fact store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph import merge
from memtrace_collector.graph.facts import Flag, Operation, SpanFacts, Value
from memtrace_collector.graph.reader import SequenceNumber
from memtrace_collector.graph.references import acted_on, used_by
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store import encoding
from memtrace_collector.store.base import Applied
from memtrace_collector.store.connections import take_numbers
from memtrace_collector.store.encoding import Place
from memtrace_collector.store.values_writer import ValueWriter
from memtrace_otel import variables

RESPONSE, CONVERSATION = 0, 1
_NUMBER_BITS = 40
"""Of an operation's id: room for 10**12 operations in 8 million graphs."""

_SpanKey = tuple[str, bytes, bytes]


@dataclass(slots=True)
class _Slot:
    """One span while its batch is applied: what is stored, and what should be."""

    operation: Operation
    position: LogPosition
    stored: Operation | None = None
    row: tuple[int, int] | None = None
    """Graph and id of the stored operation."""
    stored_position: LogPosition | None = None


class _Row(NamedTuple):
    graph: int
    id: int
    operation: Operation


@dataclass(slots=True)
class BatchWriter:
    """Applies one batch; lives as long as its transaction.

    ``graph_keys`` caches the integer keys of graphs by ``(tenant, graph id)`` between batches;
    it must be discarded when the transaction is rolled back.
    """

    connection: sqlite3.Connection
    graph_keys: dict[tuple[str, str], int]
    _added: Counter[tuple[str, str]] = field(default_factory=Counter)
    _duplicates: int = 0
    _conflicts: int = 0
    _number: int | None = None
    _thinned: set[int] = field(default_factory=set)
    """Graphs that lost an operation: their summaries are counted anew."""

    def apply(self, batch: Iterable[tuple[LogPosition, SpanFacts]]) -> Applied:
        slots: dict[_SpanKey, _Slot] = {}
        values: dict[tuple[str, str, str], Value] = {}
        flags: dict[tuple[str, str], Flag] = {}
        numbers: dict[tuple[str, str, int], SequenceNumber] = {}
        for position, facts in batch:
            if facts.operation is not None:
                self._take(slots, facts.operation, position)
                _take_number(numbers, facts.operation)
            for value in facts.values:
                value_key = (value.tenant, value.graph_id, value.ref)
                known = values.get(value_key)
                if known is None or merge.value_wins(value, known):
                    values[value_key] = value
            for flag in facts.flags:
                flag_key = (flag.tenant, flag.origin)
                other = flags.get(flag_key)
                if other is None or merge.flag_wins(flag, other):
                    flags[flag_key] = flag
            _take_farewell(numbers, facts)
        self._write_operations(slots)
        ValueWriter(self.connection, self._graph_of).write(values.values())
        self._write_flags(flags.values())
        self._write_numbers(numbers)
        return Applied(self._added, self._duplicates, self._conflicts)

    def _take(
        self, slots: dict[_SpanKey, _Slot], operation: Operation, position: LogPosition
    ) -> None:
        key = _span_key(operation)
        slot = slots.get(key) or self._stored_slot(key)
        if slot is None:
            slots[key] = _Slot(operation, position)
            self._added[operation.system, operation.step] += 1
            return
        slots[key] = slot
        slot.position = min(slot.position, position)
        if slot.operation.digest == operation.digest:
            self._duplicates += 1
            return
        self._conflicts += 1
        if merge.operation_wins(operation, slot.operation):
            slot.operation = operation

    def _stored_slot(self, key: _SpanKey) -> _Slot | None:
        row = self.connection.execute(
            "SELECT s.graph, s.operation, s.segment, s.position, o.body, g.graph_id"
            " FROM span s JOIN graph g ON g.id = s.graph"
            " JOIN operation o ON o.id = s.operation"
            " WHERE s.tenant = ? AND s.trace = ? AND s.span = ?",
            key,
        ).fetchone()
        if row is None:
            return None
        graph, operation_id, segment, offset, body, graph_id = row
        place = Place(key[0], graph_id, key[1].hex(), key[2].hex())
        stored = encoding.operation(body, place)
        position = LogPosition(segment, offset)
        return _Slot(stored, position, stored, (graph, operation_id), position)

    def _write_operations(self, slots: dict[_SpanKey, _Slot]) -> None:
        fresh: list[_Slot] = []
        for key, slot in slots.items():
            if slot.stored is None or slot.row is None:
                fresh.append(slot)
            elif slot.operation is not slot.stored:
                self._remove(slot.stored, *slot.row)
                fresh.append(slot)
            elif slot.position != slot.stored_position:
                self.connection.execute(
                    "UPDATE span SET segment = ?, position = ?"
                    " WHERE tenant = ? AND trace = ? AND span = ?",
                    (*slot.position, *key),
                )
        if not fresh:
            return
        fresh.sort(key=lambda slot: (self._graph_key(slot.operation), slot.operation.start_ns))
        first = take_numbers(self.connection, "operation", len(fresh))
        rows = [
            _Row(graph, operation_id(graph, number), slot.operation)
            for number, slot in enumerate(fresh, first)
            for graph in (self._graph_key(slot.operation),)
        ]
        self._insert(rows, [slot.position for slot in fresh])
        self._summarise(rows)

    def _insert(self, rows: list[_Row], positions: list[LogPosition]) -> None:
        execute = self.connection.executemany
        execute(
            "INSERT INTO operation VALUES (?,?,?,?,?,?)",
            [
                (
                    row.id,
                    *_span_key(row.operation)[1:],
                    *(row.operation.start_ns, row.operation.end_ns),
                    encoding.operation_body(row.operation),
                )
                for row in rows
            ],
        )
        execute(
            "INSERT OR REPLACE INTO span VALUES (?,?,?,?,?,?,?)",
            sorted(
                (*_span_key(row.operation), row.graph, row.id, *position)
                for row, position in zip(rows, positions)
            ),
        )
        execute(
            "INSERT OR IGNORE INTO produced VALUES (?,?,?,?)",
            sorted(item for row in rows for item in _produced(row)),
        )
        execute(
            "INSERT OR IGNORE INTO used VALUES (?,?,?)",
            sorted(item for row in rows for item in _used(row)),
        )
        execute(
            "INSERT OR IGNORE INTO named VALUES (?,?,?,?,?)",
            [item for row in rows for item in _named(row)],
        )

    def _remove(self, operation: Operation, graph: int, row_id: int) -> None:
        row = _Row(graph, row_id, operation)
        execute = self.connection.executemany
        execute("DELETE FROM operation WHERE id = ?", [(row_id,)])
        execute(
            "DELETE FROM produced WHERE graph = ? AND record = ? AND version = ? AND operation = ?",
            _produced(row),
        )
        execute("DELETE FROM used WHERE graph = ? AND record = ? AND operation = ?", _used(row))
        execute(
            "DELETE FROM named WHERE tenant = ? AND kind = ? AND name = ? AND graph = ?"
            " AND operation = ?",
            _named(row),
        )
        self._thinned.add(graph)

    def _write_flags(self, flags: Iterable[Flag]) -> None:
        for flag in flags:
            old = self.connection.execute(
                "SELECT body FROM flag WHERE tenant = ? AND origin = ?", (flag.tenant, flag.origin)
            ).fetchone()
            if old is None or merge.flag_wins(flag, encoding.flag(old[0])):
                key = (flag.tenant, flag.origin, flag.graph_id, flag.at_ns)
                self.connection.execute(
                    "INSERT OR REPLACE INTO flag VALUES (?,?,?,?,?,?,?)",
                    (*key, flag.target, self._change(), encoding.flag_body(flag)),
                )

    def _write_numbers(self, numbers: dict[tuple[str, str, int], SequenceNumber]) -> None:
        self.connection.executemany(
            "INSERT INTO sequence VALUES (?,?,?,?,?,?) ON CONFLICT DO UPDATE SET"
            " start_ns = min(start_ns, excluded.start_ns), end_ns = max(end_ns, excluded.end_ns),"
            " farewell = max(farewell, excluded.farewell)",
            sorted((tenant, *number) for (tenant, _, _), number in numbers.items()),
        )

    def _summarise(self, rows: Iterable[_Row]) -> None:
        times: dict[int, list[Operation]] = {}
        for row in rows:
            times.setdefault(row.graph, []).append(row.operation)
        self.connection.executemany(
            "UPDATE graph SET operations = operations + ?1,"
            " first_ns = min(ifnull(first_ns, ?2), ?2),"
            " last_ns = max(ifnull(last_ns, ?3), ?3) WHERE id = ?4",
            [
                (len(items), min(o.start_ns for o in items), max(o.end_ns for o in items), graph)
                for graph, items in times.items()
            ],
        )
        self.connection.executemany(
            "UPDATE graph SET (operations, first_ns, last_ns) ="
            " (SELECT count(*), min(start_ns), max(end_ns) FROM operation"
            " WHERE id BETWEEN ?2 AND ?3) WHERE id = ?1",
            [(graph, *operation_ids(graph)) for graph in self._thinned],
        )
        self.connection.executemany(
            "UPDATE graph SET changed = ? WHERE id = ?",
            [(self._change(), graph) for graph in times.keys() | self._thinned],
        )

    def _change(self) -> int:
        """The number under which this batch changes flags and graphs."""
        if self._number is None:
            self._number = take_numbers(self.connection, "change", 1)
        return self._number

    def _graph_key(self, operation: Operation) -> int:
        return self._graph_of(operation.tenant, operation.graph_id)

    def _graph_of(self, tenant: str, graph_id: str) -> int:
        key = self.graph_keys.get((tenant, graph_id))
        if key is None:
            self.connection.execute(
                "INSERT OR IGNORE INTO graph(tenant, graph_id) VALUES (?,?)", (tenant, graph_id)
            )
            row = self.connection.execute(
                "SELECT id FROM graph WHERE tenant = ? AND graph_id = ?", (tenant, graph_id)
            ).fetchone()
            key = self.graph_keys[tenant, graph_id] = int(row[0])
        return key


def operation_id(graph: int, number: int) -> int:
    """The id of a graph's operation; those of one graph follow each other."""
    return graph << _NUMBER_BITS | number


def operation_ids(graph: int) -> tuple[int, int]:
    """The least and the greatest id in a graph."""
    return operation_id(graph, 0), operation_id(graph, (1 << _NUMBER_BITS) - 1)


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


def _span_key(operation: Operation) -> _SpanKey:
    return (
        operation.tenant,
        bytes.fromhex(operation.trace_id),
        bytes.fromhex(operation.span_id),
    )


def _produced(row: _Row) -> list[tuple[int, int, int, int]]:
    return [
        (row.graph, encoding.record_key(ref), encoding.version_key(ref), row.id)
        for ref in row.operation.outputs
    ]


def _used(row: _Row) -> list[tuple[int, int, int]]:
    acted = {variables.record_of(ref) for ref in acted_on(row.operation)}
    met = {variables.record_of(ref) for ref in used_by(row.operation)} - acted
    keys = {*map(encoding.name_key, acted), *map(encoding.met_key, met)}
    return [(row.graph, key, row.id) for key in keys]


def _named(row: _Row) -> list[tuple[str, int, str, int, int]]:
    names = (
        (RESPONSE, row.operation.response_id),
        (CONVERSATION, row.operation.conversation_id),
    )
    return [(row.operation.tenant, kind, name, row.graph, row.id) for kind, name in names if name]
