"""Keyed lookups in SQLite: the reading half of the fact store, for one tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Value, by_time
from memtrace_collector.graph.reader import GraphSummary, Near, Run, SequenceNumber
from memtrace_collector.graph.references import records_of, used_by
from memtrace_collector.store import encoding, keys
from memtrace_collector.store.connections import Connections, int_list, json_list
from memtrace_collector.store.facts_rows import CONVERSATION, RESPONSE
from memtrace_collector.store.numbers_reader import SqliteNumbers
from memtrace_collector.store.recent import RecentOperations
from memtrace_collector.store.sqlite_values import SqliteValues
from memtrace_collector.store.user_index import UserIndex
from memtrace_otel import variables

_OF_IDS = "SELECT id, trace, span, body FROM operation WHERE id IN (SELECT value FROM json_each(?))"
_OF_SPANS = (
    "SELECT id, trace, span, body FROM operation WHERE id IN ("
    "SELECT s.operation FROM json_each(?1) wanted CROSS JOIN span s"
    " ON s.key = wanted.value AND s.operation >> 36 ="
    " (SELECT id FROM graph WHERE tenant = ?2 AND graph_id = ?3))"
)
_OF_GRAPH = (
    "SELECT o.trace, o.span, o.body FROM (SELECT id FROM operation WHERE id BETWEEN ? AND ?"
    " ORDER BY start_ns, trace, span LIMIT -1) placed CROSS JOIN operation o ON o.id = placed.id"
)
"""The limit keeps the bodies out of what is sorted: a graph may be larger than memory."""
_OF_TRACE = (
    "SELECT g.tenant, g.graph_id, o.id, o.trace, o.span, o.body FROM span s"
    " JOIN operation o ON o.id = s.operation JOIN graph g ON g.id = s.operation >> 36"
    " WHERE s.key BETWEEN ? AND ? ORDER BY o.start_ns, o.trace, o.span"
)
_OF_NAME = (
    "SELECT g.tenant, g.graph_id, o.id, o.trace, o.span, o.body FROM named n"
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
    "SELECT id, trace, span, body FROM operation WHERE id IN ("
    "SELECT p.graph << 36 | p.number FROM json_each(?1) wanted CROSS JOIN produced p"
    " ON p.ref = wanted.value AND p.graph ="
    " (SELECT id FROM graph WHERE tenant = ?2 AND graph_id = ?3))"
)
_WRITERS = (
    "SELECT id, trace, span, body FROM operation WHERE id IN ("
    "SELECT p.graph << 36 | p.number FROM json_each(?1) wanted CROSS JOIN produced p"
    " ON p.ref BETWEEN wanted.value AND wanted.value + 4294967295 AND p.graph ="
    " (SELECT id FROM graph WHERE tenant = ?2 AND graph_id = ?3))"
)
_Decode = Callable[[bytes, bytes, bytes], Operation]
_Row = tuple[int, bytes, bytes, bytes]
_Names = Callable[[Operation], Iterable[str]]


class SqliteGraphReader:
    """Implements :class:`~memtrace_collector.graph.reader.GraphReader`.

    Safe in any number of threads: each reads on its own connection. No statement gives facts of
    other tenants, and none crosses graphs but those whose key is a trace, response or
    conversation.
    """

    def __init__(
        self,
        connections: Connections,
        users: UserIndex,
        values: SqliteValues,
        recent: RecentOperations,
        tenant: str,
    ) -> None:
        self.tenant = tenant
        self._connections = connections
        self._users = users
        self._values = values
        self._recent = recent
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
        spans = {keys.span_key(self.tenant, *key) for key in keys_}
        wanted = set(keys_)
        found = ((item.key, item) for item in self._indexed(_OF_SPANS, graph_id, spans))
        return {key: item for key, item in found if key in wanted}

    def all_operations(self, graph_id: str) -> Iterator[Operation]:
        graph = self._graph(graph_id)
        if graph is None:
            return
        rows = self._connections.query(_OF_GRAPH, keys.row_ids(graph))
        decode = encoding.decoder(graph_id)
        for row in rows:
            yield decode(*row)

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
        found = self._indexed(_PRODUCERS, graph_id, map(keys.ref_key, refs))
        return _grouped(found, set(refs), lambda item: item.outputs)

    def record_writers(self, graph_id: str, records: Collection[str]) -> dict[str, list[Operation]]:
        leads = (keys.record_refs(record)[0] for record in records)
        found = self._indexed(_WRITERS, graph_id, leads)
        return _grouped(found, set(records), lambda item: records_of(item.outputs))

    def users(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        acted, met = keys.keys_of(variables.record_of(ref) for ref in refs)
        found = self._users.users(graph, acted | met)
        return _grouped(self._of_ids(graph_id, found), set(refs), used_by)

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
        return _grouped(
            self._of_ids(graph_id, found), set(records), lambda item: records_of(used_by(item))
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
            self._recent.get(row) or self._decoded(encoding.decoder(graph_id), row, *encoded)
            for tenant, graph_id, row, *encoded in self._connections.query(statement, parameters)
            if tenant == self.tenant
        ]

    def _indexed(self, statement: str, graph_id: str, wanted: Iterable[int]) -> list[Operation]:
        """The operations of a graph to which an index leads."""
        parameters = (int_list(sorted(set(wanted))), self.tenant, graph_id)
        return self._loaded(graph_id, self._connections.query(statement, parameters))

    def _of_ids(self, graph_id: str, ids: Collection[int]) -> list[Operation]:
        rows = self._connections.query(_OF_IDS, (int_list(sorted(ids)),)) if ids else ()
        return self._loaded(graph_id, rows)

    def _loaded(self, graph_id: str, rows: Iterable[_Row]) -> list[Operation]:
        known = self._recent.get
        decode = encoding.decoder(graph_id)
        return [
            known(row) or self._decoded(decode, row, trace, span, body)
            for row, trace, span, body in rows
        ]

    def _decoded(
        self, decode: _Decode, row: int, trace: bytes, span: bytes, body: bytes
    ) -> Operation:
        operation = decode(trace, span, body)
        self._recent.put(row, operation, len(body))
        return operation

    def _graph(self, graph_id: str) -> int | None:
        row = self._connections.query(
            "SELECT id FROM graph WHERE tenant = ? AND graph_id = ?", (self.tenant, graph_id)
        ).fetchone()
        return None if row is None else int(row[0])


def _grouped(
    operations: Iterable[Operation], wanted: set[str], names: _Names
) -> dict[str, list[Operation]]:
    """Operations by the wanted names they carry: what merely shares a key drops out."""
    grouped: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        for name in wanted.intersection(names(operation)):
            grouped[name].append(operation)
    for several in grouped.values():
        if len(several) > 1:
            several.sort(key=by_time)
    return dict(grouped)
