"""Keyed lookups in PostgreSQL: the reading half of the fact store, for one tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Value, by_time
from memtrace_collector.graph.reader import GraphSummary, Near, Run, SequenceNumber
from memtrace_collector.graph.references import records_of, used_by
from memtrace_collector.graph.terms import wanted
from memtrace_collector.store import encoding
from memtrace_collector.store.encoding import Place
from memtrace_collector.store.keys import record_refs, ref_key
from memtrace_collector.store.postgres import keys, search
from memtrace_collector.store.postgres.database import Database
from memtrace_collector.store.runs import runs_of
from memtrace_otel import variables

if TYPE_CHECKING:
    from typing_extensions import LiteralString

_MAX_QUERY_TERMS = 200
_GRAPHS_KEPT = 1 << 16
_PART = 2_000
"""Operations that are held at a time while a whole graph is read."""
_OF_IDS = "SELECT trace, span, body FROM operation WHERE graph = %s AND id = ANY(%s)"
_IDS_OF_KEYS = (
    "SELECT s.operation FROM unnest(%s::bytea[], %s::bytea[]) AS k(trace, span)"
    " JOIN span s ON s.tenant = %s AND s.trace = k.trace AND s.span = k.span WHERE s.graph = %s"
)
_WHOLE = "SELECT trace, span, body FROM operation WHERE graph = %s ORDER BY start_ns, trace, span"
_OF_TRACE = "SELECT graph, operation FROM span WHERE tenant = %s AND trace = %s"
_MEMBERS = "SELECT trace, span, graph FROM span WHERE tenant = %s AND trace = ANY(%s)"
_OF_NAME = "SELECT graph, operation FROM named WHERE tenant = %s AND name = %s"
_PRODUCERS = "SELECT operation FROM produced WHERE graph = %s AND ref = ANY(%s)"
_WRITERS = (
    "SELECT p.operation FROM unnest(%s::bigint[], %s::bigint[]) AS k(least, greatest)"
    " JOIN produced p ON p.graph = %s AND p.ref BETWEEN k.least AND k.greatest"
)
_USERS = """
SELECT operation FROM used
 WHERE graph = %(graph)s AND (acted && %(keys)s::int[] OR met && %(keys)s::int[])
UNION ALL
SELECT operation FROM used_key WHERE graph = %(graph)s AND record = ANY(%(keys)s::int[])
"""
_USERS_NEAR = """
WITH tail AS (
  SELECT operation, start_ns, trace, span, acted, met FROM used
   WHERE graph = %(graph)s AND (acted && %(keys)s::int[] OR met && %(keys)s::int[])),
indexed AS (
  SELECT operation, start_ns, trace, span, record, is_acted FROM used_key
   WHERE graph = %(graph)s AND record = ANY(%(keys)s::int[])),
meeting AS (
  SELECT operation, start_ns, trace, span, record FROM tail CROSS JOIN LATERAL unnest(met) AS record
   WHERE record = ANY(%(keys)s::int[])
  UNION ALL SELECT operation, start_ns, trace, span, record FROM indexed WHERE NOT is_acted),
placed AS (
  SELECT operation, row_number() OVER w AS place,
         sum((start_ns <= %(at)s)::int) OVER (PARTITION BY record) AS earlier
    FROM meeting WINDOW w AS (PARTITION BY record ORDER BY start_ns, trace, span))
SELECT operation FROM tail WHERE acted && %(keys)s::int[]
UNION SELECT operation FROM indexed WHERE is_acted
UNION SELECT operation FROM placed
 WHERE place <= %(first)s OR place BETWEEN earlier - %(before)s + 1 AND earlier + %(after)s
"""
_NUMBERS = (
    "SELECT number, start_ns, end_ns, farewell FROM sequence"
    " WHERE tenant = %s AND process = %s ORDER BY number"
)
_EDGES = """
SELECT number, start_ns, end_ns, farewell, opens FROM (
  SELECT *, coalesce(lag(number + farewell::int * number) OVER w <> number - 1, true) AS opens,
         coalesce(lead(number) OVER w <> number + 1, true) OR farewell AS closes
    FROM sequence WHERE tenant = %s AND process = %s WINDOW w AS (ORDER BY number)) AS edge
 WHERE opens OR closes ORDER BY number
"""
_VALUES = "SELECT ref, cut, verified, content FROM value WHERE graph = %s AND key = ANY(%s)"
_FLAGS = "SELECT body FROM flag WHERE tenant = %s ORDER BY at_ns, origin"
_FLAGS_OF_GRAPH = (
    "SELECT body FROM flag WHERE tenant = %s AND graph_key = %s ORDER BY at_ns, origin"
)
_FLAGS_AT = "SELECT body FROM flag WHERE tenant = %s AND target = ANY(%s) ORDER BY at_ns, origin"
decoded = lru_cache(maxsize=4_096)(encoding.operation)
"""Walks meet the same operations again and again."""
_Names = Callable[[Operation], Iterable[str]]


class PostgresGraphReader:
    """Implements :class:`~memtrace_collector.graph.reader.GraphReader`.

    Safe in any number of threads. No statement crosses tenants or joins graphs: what a trace,
    response or conversation leads to is read graph by graph.
    """

    def __init__(self, database: Database, tenant: str) -> None:
        self._database = database
        self._known: dict[int, str] = {}
        self.bind(tenant)

    def bind(self, tenant: str) -> None:
        """Read the facts of this tenant from now on."""
        self.tenant = tenant
        self._tenant = keys.name_bytes(tenant)
        self._known = {}

    def graphs(self) -> list[GraphSummary]:
        rows = self._database.query(
            "SELECT name, operations, first_ns, last_ns FROM graph"
            " WHERE tenant = %s AND operations > 0 ORDER BY name",
            (self._tenant,),
        )
        return [GraphSummary(name.decode(), *rest) for name, *rest in rows]

    def size(self, graph_id: str) -> int:
        rows = self._database.query(
            "SELECT operations FROM graph WHERE id = %s AND tenant = %s AND name = %s",
            (keys.graph_key(self.tenant, graph_id), self._tenant, keys.name_bytes(graph_id)),
        )
        return int(rows[0][0]) if rows else 0

    def operations(
        self, graph_id: str, keys_: Collection[OperationKey]
    ) -> dict[OperationKey, Operation]:
        graph = self._graph(graph_id)
        if graph is None or not keys_:
            return {}
        traces = [bytes.fromhex(key.trace_id) for key in keys_]
        spans = [bytes.fromhex(key.span_id) for key in keys_]
        rows = self._database.query(_IDS_OF_KEYS, (traces, spans, self._tenant, graph))
        return {item.key: item for item in self._load(graph_id, graph, [row[0] for row in rows])}

    def all_operations(self, graph_id: str) -> Iterator[Operation]:
        graph = self._graph(graph_id)
        if graph is None:
            return
        for trace, span, body in self._database.stream(_WHOLE, (graph,), _PART):
            yield encoding.operation(body, self._place(graph_id, trace, span))

    def trace_operations(self, trace_id: str) -> list[Operation]:
        return self._anywhere(_OF_TRACE, bytes.fromhex(trace_id))

    def trace_siblings(self, keys_: Collection[OperationKey]) -> dict[OperationKey, str]:
        traces = [bytes.fromhex(trace_id) for trace_id in {key.trace_id for key in keys_}]
        rows = self._database.query(_MEMBERS, (self._tenant, traces))
        names = self._names({row[2] for row in rows})
        asked = set(keys_)
        members = {
            OperationKey(trace.hex(), span.hex()): names[graph]
            for trace, span, graph in rows
            if graph in names
        }
        return {key: graph_id for key, graph_id in members.items() if key not in asked}

    def producers(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        rows = self._database.query(_PRODUCERS, (graph, [ref_key(ref) for ref in refs]))
        return self._grouped(graph_id, graph, rows, set(refs), lambda item: item.outputs)

    def record_writers(self, graph_id: str, records: Collection[str]) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        ranges = [record_refs(record) for record in records]
        ends = [each[0] for each in ranges], [each[1] for each in ranges]
        rows = self._database.query(_WRITERS, (*ends, graph))
        return self._grouped(graph_id, graph, rows, set(records), _outputs)

    def users(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        records = {variables.record_of(ref) for ref in refs}
        return self._users(_USERS, graph_id, records, set(refs), used_by, None)

    def record_users(
        self, graph_id: str, records: Collection[str], near: Near | None = None
    ) -> dict[str, list[Operation]]:
        statement: LiteralString = _USERS if near is None else _USERS_NEAR
        return self._users(statement, graph_id, set(records), set(records), _used, near)

    def values(self, graph_id: str, refs: Collection[str]) -> dict[str, Value]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        rows = self._database.query(_VALUES, (graph, [keys.wide_key(ref) for ref in refs]))
        return {value.ref: value for value in (self._value(graph_id, *row) for row in rows)}

    def search_values(
        self, graph_id: str, text: str, kinds: Collection[str] = (), limit: int = 20
    ) -> list[Value]:
        graph = self._graph(graph_id)
        sought = wanted(text, _MAX_QUERY_TERMS)
        if graph is None or not sought:
            return []
        found = search.search(self._database, graph, sought, kinds, limit)
        return [self._value(graph_id, *row) for row in found]

    def sequence(self, processes: Collection[str]) -> dict[str, list[SequenceNumber]]:
        found: dict[str, list[SequenceNumber]] = {}
        for process in processes:
            rows = self._database.query(_NUMBERS, (self._tenant, keys.wide_key(process)))
            if rows:
                found[process] = [SequenceNumber(process, *row) for row in rows]
        return found

    def runs(self, processes: Collection[str]) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for process in processes:
            rows = self._database.query(_EDGES, (self._tenant, keys.wide_key(process)))
            if rows:
                edges = [(SequenceNumber(process, *row), opens) for *row, opens in rows]
                found[process] = runs_of(edges)
        return found

    def flags(self, graph_id: str | None = None) -> list[Flag]:
        if graph_id is None:
            rows = self._database.query(_FLAGS, (self._tenant,))
        else:
            rows = self._database.query(_FLAGS_OF_GRAPH, (self._tenant, keys.wide_key(graph_id)))
        return [encoding.flag(row[0]) for row in rows]

    def flags_at(self, targets: Collection[str]) -> list[Flag]:
        named = [keys.wide_key(target) for target in targets]
        rows = self._database.query(_FLAGS_AT, (self._tenant, named))
        return [encoding.flag(row[0]) for row in rows]

    def response_operations(self, response_id: str) -> list[Operation]:
        return self._anywhere(_OF_NAME, keys.response_key(response_id))

    def conversation_operations(self, conversation_id: str) -> list[Operation]:
        return self._anywhere(_OF_NAME, keys.conversation_key(conversation_id))

    def _anywhere(self, statement: LiteralString, key: bytes) -> list[Operation]:
        """Operations of any graph, found by a key of their own, by time."""
        by_graph: dict[int, list[int]] = defaultdict(list)
        for graph, number in self._database.query(statement, (self._tenant, key)):
            by_graph[graph].append(number)
        names = self._names(by_graph)
        found = [
            operation
            for graph, numbers in by_graph.items()
            if graph in names
            for operation in self._load(names[graph], graph, numbers)
        ]
        return sorted(found, key=by_time)

    def _users(
        self,
        statement: LiteralString,
        graph_id: str,
        records: Collection[str],
        wanted_names: set[str],
        names: _Names,
        near: Near | None,
    ) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        parameters: dict[str, object] = {"graph": graph, "keys": _keys(records)}
        if near is not None:
            parameters |= {
                "at": near.at_ns,
                "first": near.first,
                "before": near.before,
                "after": near.after,
            }
        rows = self._database.query(statement, parameters)
        return self._grouped(graph_id, graph, rows, wanted_names, names)

    def _grouped(
        self,
        graph_id: str,
        graph: int,
        rows: Iterable[tuple[Any, ...]],
        wanted_names: set[str],
        names: _Names,
    ) -> dict[str, list[Operation]]:
        """Operations by the wanted names they carry: this also drops digest collisions."""
        grouped: dict[str, list[Operation]] = defaultdict(list)
        loaded = self._load(graph_id, graph, list({row[0] for row in rows}))
        for operation in sorted(loaded, key=by_time):
            for name in wanted_names.intersection(names(operation)):
                grouped[name].append(operation)
        return dict(grouped)

    def _load(self, graph_id: str, graph: int, numbers: list[int]) -> list[Operation]:
        rows = self._database.query(_OF_IDS, (graph, numbers)) if numbers else ()
        return [decoded(body, self._place(graph_id, trace, span)) for trace, span, body in rows]

    def _graph(self, graph_id: str) -> int | None:
        """The key of a graph that is there, and is this tenant's."""
        key = keys.graph_key(self.tenant, graph_id)
        return key if self._names((key,)).get(key) == graph_id else None

    def _names(self, wanted_keys: Collection[int]) -> dict[int, str]:
        """Names of this tenant's graphs by key. A key never comes to mean another graph."""
        found = {key: self._known[key] for key in wanted_keys if key in self._known}
        unknown = [key for key in wanted_keys if key not in found]
        if unknown:
            rows = self._database.query(
                "SELECT id, name FROM graph WHERE id = ANY(%s) AND tenant = %s",
                (unknown, self._tenant),
            )
            if len(self._known) > _GRAPHS_KEPT:
                self._known.clear()
            fresh = {key: name.decode() for key, name in rows}
            self._known |= fresh
            found |= fresh
        return found

    def _all_values(self, graph_id: str) -> Iterator[Value]:
        rows = self._database.query(
            "SELECT ref, cut, verified, content FROM value WHERE graph = %s",
            (keys.graph_key(self.tenant, graph_id),),
        )
        return (self._value(graph_id, *row) for row in rows)

    def _place(self, graph_id: str, trace: bytes, span: bytes) -> Place:
        return Place(self.tenant, graph_id, trace.hex(), span.hex())

    def _value(self, graph_id: str, ref: bytes, cut: bool, verified: bool, body: bytes) -> Value:
        return Value(
            graph_id=graph_id,
            ref=ref.decode(),
            content=encoding.content(body),
            tenant=self.tenant,
            cut=cut,
            verified=verified,
        )


def _keys(records: Iterable[str]) -> list[int]:
    return [keys.record_key(record) for record in records]


def _outputs(operation: Operation) -> set[str]:
    return records_of(operation.outputs)


def _used(operation: Operation) -> set[str]:
    return records_of(used_by(operation))
