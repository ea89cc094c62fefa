"""Keyed lookups in SQLite: the reading half of the fact store, for one tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache

from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Value
from memtrace_collector.graph.reader import GraphSummary, Near, Run, SequenceNumber
from memtrace_collector.graph.references import used_by
from memtrace_collector.store import encoding, keys
from memtrace_collector.store.connections import Connections, int_list, json_list
from memtrace_collector.store.encoding import Place
from memtrace_collector.store.facts_rows import CONVERSATION, RESPONSE
from memtrace_collector.store.numbers_reader import SqliteNumbers
from memtrace_collector.store.sqlite_values import SqliteValues
from memtrace_collector.store.user_index import UserIndex
from memtrace_otel import variables

_OF_IDS = "SELECT id, trace, span, body FROM operation WHERE id IN (SELECT value FROM json_each(?))"
_OF_SPANS = (
    "SELECT o.id, o.trace, o.span, o.body FROM json_each(?1) wanted CROSS JOIN span s"
    " ON s.key = wanted.value AND s.operation BETWEEN ?2 AND ?3"
    " JOIN operation o ON o.id = s.operation"
)
_OF_TRACE = (
    "SELECT g.tenant, g.graph_id, o.trace, o.span, o.body FROM span s"
    " JOIN operation o ON o.id = s.operation JOIN graph g ON g.id = s.operation >> 36"
    " WHERE s.key BETWEEN ? AND ? ORDER BY o.start_ns, o.trace, o.span"
)
_OF_NAME = (
    "SELECT g.tenant, g.graph_id, o.trace, o.span, o.body FROM named n"
    " JOIN operation o ON o.id = n.operation JOIN graph g ON g.id = n.operation >> 36"
    " WHERE n.name = ? ORDER BY o.start_ns, o.trace, o.span"
)
_SHARED = (
    "SELECT wanted.value FROM json_each(?) wanted WHERE (SELECT s.operation FROM span s"
    " WHERE s.key BETWEEN wanted.value AND wanted.value + 4294967295 LIMIT 1 OFFSET 1) IS NOT NULL"
)
"""Most operations of some writers are alone in their trace: those are sorted out first."""
_MEMBERS = (
    "SELECT o.trace, o.span, g.tenant, g.graph_id FROM json_each(?) wanted CROSS JOIN span s"
    " ON s.key BETWEEN wanted.value AND wanted.value + 4294967295"
    " JOIN operation o ON o.id = s.operation JOIN graph g ON g.id = s.operation >> 36"
)
_PRODUCERS = (
    "SELECT o.id, o.trace, o.span, o.body FROM json_each(?1) wanted CROSS JOIN produced p"
    " ON p.graph = ?2 AND p.ref = wanted.value JOIN operation o ON o.id = ?2 << 36 | p.number"
)
_WRITERS = (
    "SELECT o.id, o.trace, o.span, o.body FROM json_each(?1) wanted CROSS JOIN produced p"
    " ON p.graph = ?2 AND p.ref BETWEEN wanted.value AND wanted.value + 4294967295"
    " JOIN operation o ON o.id = ?2 << 36 | p.number"
)
decoded = lru_cache(maxsize=4_096)(encoding.operation)
"""Walks meet the same operations again and again."""
_Names = Callable[[Operation], Iterable[str]]
_Row = tuple[int, bytes, bytes, bytes]


class SqliteGraphReader:
    """Implements :class:`~memtrace_collector.graph.reader.GraphReader`.

    Safe in any number of threads: each reads on its own connection. No statement gives facts of
    other tenants, and none crosses graphs but those whose key is a trace, response or
    conversation.
    """

    def __init__(
        self, connections: Connections, users: UserIndex, values: SqliteValues, tenant: str
    ) -> None:
        self.tenant = tenant
        self._connections = connections
        self._users = users
        self._values = values
        self._numbers = SqliteNumbers(connections, tenant)

    def graphs(self) -> list[GraphSummary]:
        rows = self._connections.query(
            "SELECT graph_id, operations, first_ns, last_ns FROM graph"
            " WHERE tenant = ? AND operations > 0 ORDER BY graph_id",
            (self.tenant,),
        )
        return [GraphSummary(*row) for row in rows]

    def operations(
        self, graph_id: str, keys_: Collection[OperationKey]
    ) -> dict[OperationKey, Operation]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        spans = {keys.span_key(self.tenant, *key) for key in keys_}
        rows = self._connections.query(_OF_SPANS, (json_list(spans), *keys.row_ids(graph)))
        wanted = set(keys_)
        loaded = self._decoded(graph_id, rows)
        return {item.key: item for item in loaded if item.key in wanted}

    def all_operations(self, graph_id: str) -> Iterator[Operation]:
        graph = self._graph(graph_id)
        if graph is None:
            return
        rows = self._connections.query(
            "SELECT trace, span, body FROM operation WHERE id BETWEEN ? AND ?"
            " ORDER BY start_ns, trace, span",
            keys.row_ids(graph),
        )
        for trace, span, body in rows:
            yield encoding.operation(body, self._place(graph_id, trace, span))

    def trace_operations(self, trace_id: str) -> list[Operation]:
        found = self._anywhere(_OF_TRACE, keys.trace_spans(self.tenant, trace_id))
        return [item for item in found if item.trace_id == trace_id]

    def trace_siblings(self, keys_: Collection[OperationKey]) -> dict[OperationKey, str]:
        traces = {key.trace_id for key in keys_}
        leads = {keys.trace_spans(self.tenant, trace_id)[0] for trace_id in traces}
        shared = [row[0] for row in self._connections.query(_SHARED, (int_list(sorted(leads)),))]
        if not shared:
            return {}
        known = set(keys_)
        found = {}
        rows = self._connections.query(_MEMBERS, (int_list(shared),))
        for trace, span, tenant, graph_id in rows:
            key = OperationKey(trace.hex(), span.hex())
            if tenant == self.tenant and key.trace_id in traces and key not in known:
                found[key] = graph_id
        return found

    def size(self, graph_id: str) -> int:
        row = self._connections.query(
            "SELECT operations FROM graph WHERE tenant = ? AND graph_id = ?",
            (self.tenant, graph_id),
        ).fetchone()
        return int(row[0]) if row else 0

    def producers(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        wanted = sorted({keys.ref_key(ref) for ref in refs})
        rows = self._connections.query(_PRODUCERS, (int_list(wanted), graph))
        return self._grouped(graph_id, rows, set(refs), lambda item: item.outputs)

    def record_writers(self, graph_id: str, records: Collection[str]) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        wanted = sorted({keys.record_refs(record)[0] for record in records})
        rows = self._connections.query(_WRITERS, (json_list(wanted), graph))
        return self._grouped(graph_id, rows, set(records), lambda item: _records(item.outputs))

    def users(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        acted, met = keys.keys_of(variables.record_of(ref) for ref in refs)
        found = self._users.users(graph, acted | met)
        return self._grouped(graph_id, self._rows(found), set(refs), used_by)

    def record_users(
        self, graph_id: str, records: Collection[str], near: Near | None = None
    ) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        acted, met = keys.keys_of(records)
        if near is None:
            found = self._users.users(graph, acted | met)
        else:
            found = self._users.users(graph, acted) | self._users.users_near(graph, met, near)
        return self._grouped(
            graph_id, self._rows(found), set(records), lambda item: _records(used_by(item))
        )

    def values(self, graph_id: str, refs: Collection[str]) -> dict[str, Value]:
        return self._values.values(self.tenant, graph_id, refs)

    def sequence(self, processes: Collection[str]) -> dict[str, list[SequenceNumber]]:
        return self._numbers.sequence(processes)

    def runs(self, processes: Collection[str]) -> dict[str, list[Run]]:
        return self._numbers.runs(processes)

    def flags(self, graph_id: str | None = None) -> list[Flag]:
        rows = self._connections.query(
            "SELECT body FROM flag WHERE tenant = ?1 AND (?2 IS NULL OR graph_id = ?2)"
            " ORDER BY at_ns, origin",
            (self.tenant, graph_id),
        )
        return [encoding.flag(row[0]) for row in rows]

    def flags_at(self, targets: Collection[str]) -> list[Flag]:
        rows = self._connections.query(
            "SELECT body FROM flag WHERE tenant = ? AND target IN (SELECT value FROM json_each(?))"
            " ORDER BY at_ns, origin",
            (self.tenant, json_list(targets)),
        )
        return [encoding.flag(row[0]) for row in rows]

    def response_operations(self, response_id: str) -> list[Operation]:
        found = self._anywhere(_OF_NAME, (keys.name_key(self.tenant, RESPONSE, response_id),))
        return [item for item in found if item.response_id == response_id]

    def conversation_operations(self, conversation_id: str) -> list[Operation]:
        name = keys.name_key(self.tenant, CONVERSATION, conversation_id)
        found = self._anywhere(_OF_NAME, (name,))
        return [item for item in found if item.conversation_id == conversation_id]

    def _anywhere(self, statement: str, parameters: tuple[int, ...]) -> list[Operation]:
        """Operations of the tenant in any graph, found by a key of their own."""
        return [
            decoded(body, self._place(graph_id, trace, span))
            for tenant, graph_id, trace, span, body in self._connections.query(
                statement, parameters
            )
            if tenant == self.tenant
        ]

    def _rows(self, ids: Collection[int]) -> Iterable[_Row]:
        return self._connections.query(_OF_IDS, (int_list(sorted(ids)),)) if ids else ()

    def _grouped(
        self, graph_id: str, rows: Iterable[_Row], wanted: set[str], names: _Names
    ) -> dict[str, list[Operation]]:
        """Operations by the wanted names they carry: what merely shares a key drops out."""
        grouped: dict[str, list[Operation]] = defaultdict(list)
        unique = {row[0]: row for row in rows}
        for operation in self._decoded(graph_id, unique.values()):
            for name in wanted.intersection(names(operation)):
                grouped[name].append(operation)
        for several in grouped.values():
            if len(several) > 1:
                several.sort(key=lambda o: (o.start_ns, o.trace_id, o.span_id))
        return dict(grouped)

    def _decoded(self, graph_id: str, rows: Iterable[_Row]) -> list[Operation]:
        return [decoded(body, self._place(graph_id, trace, span)) for _, trace, span, body in rows]

    def _graph(self, graph_id: str) -> int | None:
        row = self._connections.query(
            "SELECT id FROM graph WHERE tenant = ? AND graph_id = ?", (self.tenant, graph_id)
        ).fetchone()
        return None if row is None else int(row[0])

    def _place(self, graph_id: str, trace: bytes, span: bytes) -> Place:
        return Place(self.tenant, graph_id, trace.hex(), span.hex())


def _records(refs: Iterable[str]) -> set[str]:
    return {variables.record_of(ref) for ref in refs}
