"""One batch of facts into PostgreSQL, in one transaction: the writing half of the fact store.

Any number of processes may apply batches at once. All take their locks in one order (graphs,
spans, values, flags, numbers, graphs' totals, the number of the change, the cursor, and in each
by key), so that they wait for each other and never in a circle. The number of a change is taken
last and held until the transaction ends: who reads up to a number misses none below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph import merge
from memtrace_collector.graph.facts import Operation
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store import encoding
from memtrace_collector.store.base import Applied
from memtrace_collector.store.encoding import Place
from memtrace_collector.store.keys import ref_key
from memtrace_collector.store.postgres import graphs, keys, rows
from memtrace_collector.store.postgres.batch import Batch, Sighting, SpanKey
from memtrace_collector.store.postgres.database import Connection
from memtrace_collector.store.postgres.others_writer import write_flags, write_numbers
from memtrace_collector.store.postgres.values_writer import write_values

_NUMBER_BITS = 20
"""Of an operation's id: operations in one batch; the other bits count batches."""
_SPANS = (
    "CREATE TEMP TABLE IF NOT EXISTS batch_span(LIKE span) ON COMMIT DELETE ROWS",
    "COPY batch_span FROM STDIN (FORMAT BINARY)",
    "INSERT INTO span SELECT * FROM batch_span ORDER BY tenant, trace, span ON CONFLICT DO NOTHING",
)
_STORED = (
    "SELECT s.tenant, s.trace, s.span, s.graph, s.operation, s.log, s.segment, s.position"
    " FROM batch_span b JOIN span s USING (tenant, trace, span)"
    " WHERE s.operation <> b.operation ORDER BY 1, 2, 3 FOR UPDATE OF s"
)
_BODIES = (
    "SELECT o.id, o.body FROM unnest(%s::bigint[], %s::bigint[]) AS k(graph, id)"
    " JOIN operation o ON o.graph = k.graph AND o.id = k.id"
)
_MOVE = (
    "UPDATE span SET graph = %s, operation = %s, segment = %s, position = %s"
    " WHERE tenant = %s AND trace = %s AND span = %s"
)


@dataclass(slots=True)
class _Slot:
    """One span while its batch is applied: what is stored, and what should be."""

    operation: Operation
    position: LogPosition
    number: int = 0
    """The id of the row, if one is written."""


class _Stored(NamedTuple):
    """A span as it is in the store."""

    operation: Operation
    graph: int
    number: int
    position: LogPosition
    is_elsewhere: bool
    """Another log saw it first."""


@dataclass(slots=True)
class BatchWriter:
    """Writes one batch; lives as long as its transaction. ``log``: the key of the batch's log."""

    connection: Connection
    log: int
    _added: list[Operation] = field(default_factory=list)
    _duplicates: int = 0
    _conflicts: int = 0
    _fresh: list[tuple[int, _Slot]] = field(default_factory=list)
    """By graph: what is written as a row."""
    _removed: list[tuple[int, Operation]] = field(default_factory=list)
    """By graph: what another content of the span took the place of."""

    def write(self, batch: Batch) -> Applied:
        graphs.hold(self.connection, batch.graphs)
        number = self._first_number()
        self._write_operations(batch.operations, number)
        write_values(self.connection, batch.values, batch.value_times, number)
        flags = write_flags(self.connection, batch.flags)
        write_numbers(self.connection, batch.numbers)
        added = [(graph, slot.operation) for graph, slot in self._fresh]
        graphs.count(self.connection, added, self._removed, flags)
        return Applied(tuple(self._added), self._duplicates, self._conflicts)

    def _first_number(self) -> int:
        ((batch,),) = self.connection.execute("SELECT nextval('batch')").fetchall()
        return int(batch) << _NUMBER_BITS

    def _write_operations(self, seen: Mapping[SpanKey, list[Sighting]], first: int) -> None:
        if not seen:
            return
        slots = {}
        for number, (key, sightings) in enumerate(seen.items(), first):
            slot = slots[key] = _Slot(sightings[0][1], sightings[0][0], number)
            self._fold(slot, sightings[1:], counted=False)
        stored = self._stored(slots)
        for key, sightings in seen.items():
            old = stored.get(key)
            if old is None:
                self._count_fresh(slots[key], sightings)
            else:
                slot = _Slot(old.operation, old.position, slots[key].number)
                self._fold(slot, sightings, counted=True)
                self._settle(slot, old)
        self._fresh.sort(key=lambda item: (item[0], item[1].operation.start_ns))
        self._insert()

    def _fold(self, slot: _Slot, sightings: Iterable[Sighting], *, counted: bool) -> None:
        for position, operation in sightings:
            slot.position = min(slot.position, position)
            is_repeat = slot.operation.digest == operation.digest
            if counted:
                self._duplicates += is_repeat
                self._conflicts += not is_repeat
            if not is_repeat and merge.operation_wins(operation, slot.operation):
                slot.operation = operation

    def _count_fresh(self, slot: _Slot, sightings: list[Sighting]) -> None:
        first = sightings[0][1]
        self._added.append(first)
        if len(sightings) > 1:
            self._fold(_Slot(first, slot.position), sightings[1:], counted=True)
        self._fresh.append((_graph_of(slot.operation), slot))

    def _stored(self, slots: Mapping[SpanKey, _Slot]) -> dict[SpanKey, _Stored]:
        """Write the spans that are new; the others, locked, as they are stored."""
        table, copied, inserted = _SPANS
        self.connection.execute(table)
        copied_rows = [
            rows.span_row(
                _graph_of(slot.operation), slot.number, slot.operation, self.log, slot.position
            )
            for slot in slots.values()
        ]
        rows.copy(self.connection, copied, copied_rows)
        if self.connection.execute(inserted).rowcount == len(slots):
            return {}
        found = self.connection.execute(_STORED, binary=True).fetchall()
        bodies: dict[int, bytes] = dict(
            self.connection.execute(
                _BODIES, ([row[3] for row in found], [row[4] for row in found]), binary=True
            ).fetchall()
        )
        names = graphs.names(self.connection, {row[3] for row in found})
        stored = {}
        for tenant, trace, span, graph, number, log, segment, offset in found:
            place = Place(tenant.decode(), names[graph], trace.hex(), span.hex())
            operation = encoding.operation(bodies[number], place)
            position = LogPosition(segment, offset)
            stored[place.tenant, place.trace_id, place.span_id] = _Stored(
                operation, graph, number, position, log != self.log
            )
        return stored

    def _settle(self, slot: _Slot, stored: _Stored) -> None:
        """Write what became of a span that was stored."""
        graph, number = stored.graph, stored.number
        position = stored.position if stored.is_elsewhere else slot.position
        if slot.operation is not stored.operation:
            self._remove(stored.operation, graph, number)
            graph, number = _graph_of(slot.operation), slot.number
            self._fresh.append((graph, slot))
        elif position == stored.position:
            return
        key = (keys.name_bytes(slot.operation.tenant), *rows.span_ids(slot.operation))
        self.connection.execute(_MOVE, (graph, number, *position, *key))

    def _remove(self, operation: Operation, graph: int, number: int) -> None:
        execute = self.connection.execute
        execute("DELETE FROM operation WHERE graph = %s AND id = %s", (graph, number))
        # in this order: what is moved meanwhile is found where it then is
        execute("DELETE FROM used WHERE graph = %s AND operation = %s", (graph, number))
        used = [keys.signed(key) for kind in keys.use_keys(operation) for key in kind]
        execute(
            "DELETE FROM used_key WHERE graph = %s AND record = ANY(%s) AND operation = %s",
            (graph, used, number),
        )
        execute(
            "DELETE FROM produced WHERE graph = %s AND ref = ANY(%s) AND operation = %s",
            (graph, [ref_key(ref) for ref in operation.outputs], number),
        )
        execute(
            "DELETE FROM named WHERE tenant = %s AND name = ANY(%s)"
            " AND graph = %s AND operation = %s",
            (keys.name_bytes(operation.tenant), _named(operation), graph, number),
        )
        self._removed.append((graph, operation))

    def _insert(self) -> None:
        written = [(graph, slot.number, slot.operation) for graph, slot in self._fresh]
        if not written:
            return
        rows.copy(
            self.connection,
            "COPY operation(graph, id, start_ns, end_ns, trace, span, body)"
            " FROM STDIN (FORMAT BINARY)",
            [rows.operation_row(*each) for each in written],
        )
        rows.copy(
            self.connection,
            "COPY used FROM STDIN (FORMAT BINARY)",
            [rows.used_row(*each, *keys.use_keys(each[2])) for each in written],
        )
        rows.copy(
            self.connection,
            "COPY produced FROM STDIN (FORMAT BINARY)",
            [
                rows.produced_row(graph, number, ref)
                for graph, number, operation in written
                for ref in dict.fromkeys(operation.outputs)
            ],
        )
        named = [
            rows.named_row(graph, number, operation.tenant, name)
            for graph, number, operation in written
            for name in _named(operation)
        ]
        if named:
            rows.copy(self.connection, "COPY named FROM STDIN (FORMAT BINARY)", named)


def _graph_of(operation: Operation) -> int:
    return keys.graph_key(operation.tenant, operation.graph_id)


def _named(operation: Operation) -> list[bytes]:
    found = []
    if operation.response_id:
        found.append(keys.response_key(operation.response_id))
    if operation.conversation_id:
        found.append(keys.conversation_key(operation.conversation_id))
    return found
