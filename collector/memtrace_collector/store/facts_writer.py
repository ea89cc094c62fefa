"""One batch of facts into SQLite, in one transaction: the writing half of the fact store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from memtrace_collector.graph import merge
from memtrace_collector.graph.facts import Flag, Operation
from memtrace_collector.graph.reader import SequenceNumber
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store import encoding, facts_rows, keys
from memtrace_collector.store.base import Applied
from memtrace_collector.store.connections import json_list, take_numbers
from memtrace_collector.store.encoding import Place
from memtrace_collector.store.facts_rows import Stored
from memtrace_collector.store.gathering import Gathered

_STORED = (
    "SELECT s.key, s.operation, s.segment, s.position, g.tenant, g.graph_id,"
    " o.trace, o.span, o.body"
    " FROM json_each(?) wanted CROSS JOIN span s ON s.key = wanted.value"
    " JOIN operation o ON o.id = s.operation JOIN graph g ON g.id = s.operation >> 36"
)
_GRAPHS_KEPT = 200_000

_SpanKey = tuple[str, str, str]


@dataclass(slots=True)
class _Slot:
    """One span while its batch is applied: what is stored, and what should be."""

    span: int
    operation: Operation
    position: LogPosition
    stored: Stored | None = None


@dataclass(slots=True)
class BatchWriter:
    """Applies one batch; lives as long as its transaction.

    ``graph_keys`` caches the integer keys of graphs by ``(tenant, graph id)`` between batches;
    it must be discarded when the transaction is rolled back, and when graphs are erased.
    """

    connection: sqlite3.Connection
    graph_keys: dict[tuple[str, str], int]
    _added: list[Operation] = field(default_factory=list)
    _duplicates: int = 0
    _conflicts: int = 0
    _number: int | None = None
    _thinned: set[int] = field(default_factory=set)
    """Graphs that lost an operation: their summaries are counted anew."""

    def apply(self, gathered: Gathered) -> Applied:
        self._write_operations(self._slots(gathered.operations))
        self._write_flags(gathered.flags.values())
        self._write_numbers(gathered.numbers)
        return Applied(tuple(self._added), self._duplicates, self._conflicts)

    def _slots(self, operations: list[tuple[LogPosition, Operation]]) -> Iterable[_Slot]:
        spans = [facts_rows.span_key(operation) for _, operation in operations]
        known = self._known(set(spans))
        slots: dict[_SpanKey, _Slot] = {}
        for span, (position, operation) in zip(spans, operations):
            key = (operation.tenant, operation.trace_id, operation.span_id)
            slot = slots.get(key)
            if slot is None:
                stored = known.get(key)
                if stored is None:
                    slots[key] = _Slot(span, operation, position)
                    self._added.append(operation)
                    continue
                slot = slots[key] = _Slot(span, stored.operation, stored.position, stored)
            slot.position = min(slot.position, position)
            if slot.operation.digest == operation.digest:
                self._duplicates += 1
                continue
            self._conflicts += 1
            if merge.operation_wins(operation, slot.operation):
                slot.operation = operation
        return slots.values()

    def _known(self, span_keys: set[int]) -> dict[_SpanKey, Stored]:
        """What is stored of these spans (and of others that share a key)."""
        found = {}
        rows = self.connection.execute(_STORED, (json_list(sorted(span_keys)),))
        for key, row, segment, offset, tenant, graph_id, trace, span, body in rows:
            place = Place(tenant, graph_id, trace.hex(), span.hex())
            found[tenant, place.trace_id, place.span_id] = Stored(
                keys.graph_of(row),
                keys.number_of(row),
                key,
                encoding.operation(body, place),
                LogPosition(segment, offset),
            )
        return found

    def _write_operations(self, slots: Iterable[_Slot]) -> None:
        fresh: list[tuple[int, _Slot]] = []
        for slot in slots:
            stored = slot.stored
            if stored is None or slot.operation is not stored.operation:
                if stored is not None:
                    facts_rows.remove(self.connection, [stored])
                    self._thinned.add(stored.graph)
                operation = slot.operation
                fresh.append((self._graph_of(operation.tenant, operation.graph_id), slot))
            elif slot.position != stored.position:
                self.connection.execute(
                    "UPDATE span SET segment = ?, position = ? WHERE key = ? AND operation = ?",
                    (*slot.position, stored.span, stored.id),
                )
        if not fresh:
            return
        fresh.sort(key=lambda item: (item[0], item[1].operation.start_ns))
        first = take_numbers(self.connection, "operation", len(fresh))
        rows = [
            Stored(graph, number, slot.span, slot.operation, slot.position)
            for number, (graph, slot) in enumerate(fresh, first)
        ]
        facts_rows.insert(self.connection, rows)
        self._summarise(rows)

    def _summarise(self, rows: Iterable[Stored]) -> None:
        times: dict[int, list[Operation]] = {}
        for row in rows:
            times.setdefault(row.graph, []).append(row.operation)
        change = self._change()
        self.connection.executemany(
            "UPDATE graph SET operations = operations + ?1, unindexed = unindexed + ?1,"
            " first_ns = min(ifnull(first_ns, ?2), ?2),"
            " last_ns = max(ifnull(last_ns, ?3), ?3), changed = ?4 WHERE id = ?5",
            [
                (
                    len(items),
                    min(item.start_ns for item in items),
                    max(item.end_ns for item in items),
                    change,
                    graph,
                )
                for graph, items in sorted(times.items())
            ],
        )
        self.connection.executemany(
            "UPDATE graph SET removals = removals + 1, changed = ?4,"
            " (operations, first_ns, last_ns) = (SELECT count(*), min(start_ns), max(end_ns)"
            " FROM operation WHERE id BETWEEN ?2 AND ?3) WHERE id = ?1",
            [(graph, *keys.row_ids(graph), change) for graph in sorted(self._thinned)],
        )

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

    def _change(self) -> int:
        """The number under which this batch changes flags and graphs."""
        if self._number is None:
            self._number = take_numbers(self.connection, "change", 1)
        return self._number

    def _graph_of(self, tenant: str, graph_id: str) -> int:
        key = self.graph_keys.get((tenant, graph_id))
        if key is None:
            if len(self.graph_keys) >= _GRAPHS_KEPT:
                self.graph_keys.clear()
            key = self.graph_keys[tenant, graph_id] = graph_key(self.connection, tenant, graph_id)
        return key


def graph_key(connection: sqlite3.Connection, tenant: str, graph_id: str) -> int:
    """The integer key of a graph, given now if it has none."""
    row = connection.execute(
        "SELECT id FROM graph WHERE tenant = ? AND graph_id = ?", (tenant, graph_id)
    ).fetchone()
    if row is None:
        row = connection.execute(
            "INSERT INTO graph(tenant, graph_id) VALUES (?,?) RETURNING id", (tenant, graph_id)
        ).fetchone()
    return int(row[0])
