"""Keyed lookups in SQLite: the reading half of the fact store, for one tenant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Value
from memtrace_collector.graph.reader import GraphSummary, Near, Run, SequenceNumber
from memtrace_collector.graph.references import used_by
from memtrace_collector.graph.terms import wanted
from memtrace_collector.store import encoding
from memtrace_collector.store.connections import Connections, json_list
from memtrace_collector.store.encoding import Place
from memtrace_collector.store.facts_writer import CONVERSATION, RESPONSE, operation_ids
from memtrace_otel import semconv, variables

_MAX_QUERY_TERMS = 200
_PROCESSES_KEPT = 4_096
_PARTS = (1, 16, 256)
"""Keys that are not numbers go into one statement in parts of so many."""
_OF_IDS = "SELECT id, trace, span, body FROM operation WHERE id IN (SELECT value FROM json_each(?))"
_OF_TRACE = (
    "SELECT g.graph_id, o.trace, o.span, o.body FROM span s"
    " JOIN operation o ON o.id = s.operation"
    " JOIN graph g ON g.id = s.graph WHERE s.tenant = ? AND s.trace = ?"
    " ORDER BY o.start_ns, o.trace, o.span"
)
_SPANS = (
    "SELECT s.trace, s.span, g.graph_id FROM span s JOIN graph g ON g.id = s.graph"
    " WHERE s.tenant = ? AND s.trace IN ({})"
)
_SHARED = (
    "SELECT trace FROM span WHERE tenant = ? AND trace IN ({}) GROUP BY trace HAVING count(*) > 1"
)
"""Most operations of some writers are alone in their trace: those are sorted out first."""
_OF_NAME = (
    "SELECT g.graph_id, o.trace, o.span, o.body FROM named s"
    " JOIN operation o ON o.id = s.operation"
    " JOIN graph g ON g.id = s.graph WHERE s.tenant = ? AND s.kind = ? AND s.name = ?"
    " ORDER BY o.start_ns, o.trace, o.span"
)
_PRODUCERS = (
    "SELECT p.operation FROM json_each(?1) wanted CROSS JOIN produced p ON p.graph = ?2"
    " AND p.record = json_extract(wanted.value, '$[0]')"
    " AND p.version = json_extract(wanted.value, '$[1]')"
)
_WRITERS = (
    "SELECT operation FROM produced WHERE graph = ? AND record IN (SELECT value FROM json_each(?))"
)
_USERS = "SELECT operation FROM used WHERE graph = ? AND record IN (SELECT value FROM json_each(?))"
_MET_NEAR = (
    "SELECT operation FROM (SELECT u.operation,"
    " row_number() OVER (PARTITION BY u.record ORDER BY o.start_ns, o.trace, o.span) AS place,"
    " sum(o.start_ns <= ?3) OVER (PARTITION BY u.record) AS earlier"
    " FROM used u CROSS JOIN operation o ON o.id = u.operation"
    " WHERE u.graph = ?1 AND u.record IN (SELECT value FROM json_each(?2)))"
    " WHERE place <= ?4 OR place BETWEEN earlier - ?5 + 1 AND earlier + ?6"
)
_SEQUENCE_FROM = (
    "SELECT (SELECT min(number) FROM sequence WHERE tenant = ?1 AND process = ?2), max(number),"
    " sum(number > ?3), sum(farewell) > (max(number * farewell) = max(number)) FROM sequence"
    " WHERE tenant = ?1 AND process = ?2 AND number >= ?3"
)
"""Last: whether somebody said farewell before the last number."""
_ENDS = (
    "SELECT number, start_ns, end_ns, farewell, number = ?3 FROM sequence"
    " WHERE tenant = ?1 AND process = ?2 AND number IN (?3, ?4) ORDER BY number"
)
_EDGES = (
    "SELECT number, start_ns, end_ns, farewell, opens FROM (SELECT *,"
    " ifnull(lag(number + farewell * number) OVER w <> number - 1, 1) AS opens,"
    " ifnull(lead(number) OVER w <> number + 1, 1) OR farewell AS closes"
    " FROM sequence WHERE tenant = ? AND process = ? WINDOW w AS (ORDER BY number))"
    " WHERE opens OR closes ORDER BY number"
)
_VALUES = (
    "SELECT ref, cut, verified, content FROM value"
    " WHERE graph = ? AND ref IN (SELECT value FROM json_each(?))"
)
decoded = lru_cache(maxsize=4_096)(encoding.operation)
"""Walks meet the same operations again and again."""
_Names = Callable[[Operation], Iterable[str]]


class SqliteGraphReader:
    """Implements :class:`~memtrace_collector.graph.reader.GraphReader`.

    Safe in any number of threads: each reads on its own connection. No statement crosses
    tenants, and none crosses graphs but those whose key is a trace, response or conversation.
    """

    def __init__(self, connections: Connections, tenant: str) -> None:
        self.tenant = tenant
        self._connections = connections
        self._whole: dict[str, tuple[int, int]] = {}

    def graphs(self) -> list[GraphSummary]:
        rows = self._connections.query(
            "SELECT graph_id, operations, first_ns, last_ns FROM graph"
            " WHERE tenant = ? AND operations > 0 ORDER BY graph_id",
            (self.tenant,),
        )
        return [GraphSummary(*row) for row in rows]

    def operations(
        self, graph_id: str, keys: Collection[OperationKey]
    ) -> dict[OperationKey, Operation]:
        graph = self._graph(graph_id)
        numbers: list[int] = []
        for key in keys if graph is not None else ():
            row = self._connections.query(
                "SELECT graph, operation FROM span WHERE tenant = ? AND trace = ? AND span = ?",
                (self.tenant, _bytes(key.trace_id), _bytes(key.span_id)),
            ).fetchone()
            if row is not None and row[0] == graph:
                numbers.append(row[1])
        loaded = self._load(graph_id, numbers)
        return {operation.key: operation for operation in loaded.values()}

    def all_operations(self, graph_id: str) -> Iterator[Operation]:
        graph = self._graph(graph_id)
        if graph is None:
            return
        rows = self._connections.query(
            "SELECT trace, span, body FROM operation WHERE id BETWEEN ? AND ?"
            " ORDER BY start_ns, trace, span",
            operation_ids(graph),
        )
        for trace, span, body in rows:
            yield encoding.operation(body, self._place(graph_id, trace, span))

    def trace_operations(self, trace_id: str) -> list[Operation]:
        return self._anywhere(_OF_TRACE, (self.tenant, _bytes(trace_id)))

    def trace_siblings(self, keys: Collection[OperationKey]) -> dict[OperationKey, str]:
        traces = sorted({_bytes(key.trace_id) for key in keys})
        shared = [row[0] for row in self._of_traces(_SHARED, traces)]
        found = {
            OperationKey(trace.hex(), span.hex()): graph_id
            for trace, span, graph_id in self._of_traces(_SPANS, shared)
        }
        return {key: graph_id for key, graph_id in found.items() if key not in keys}

    def _of_traces(self, statement: str, traces: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        for some in _in_parts(traces):
            marks = ",".join("?" * len(some))
            yield from self._connections.query(statement.format(marks), (self.tenant, *some))

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
        keys = [(encoding.record_key(ref), encoding.version_key(ref)) for ref in refs]
        rows = self._connections.query(_PRODUCERS, (json_list(keys), graph))
        numbers = {row[0] for row in rows}
        return self._grouped(graph_id, numbers, set(refs), lambda item: item.outputs)

    def record_writers(self, graph_id: str, records: Collection[str]) -> dict[str, list[Operation]]:
        return self._by_record(graph_id, _WRITERS, records, lambda item: _records(item.outputs))

    def users(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        records = {variables.record_of(ref) for ref in refs}
        numbers = self._numbers(_USERS, graph, records)
        met = json_list(encoding.met_key(record) for record in records)
        numbers.update(row[0] for row in self._connections.query(_USERS, (graph, met)))
        return self._grouped(graph_id, numbers, set(refs), used_by)

    def record_users(
        self, graph_id: str, records: Collection[str], near: Near | None = None
    ) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        numbers = self._numbers(_USERS, graph, records)
        met = json_list(encoding.met_key(record) for record in records)
        if near is None:
            rows = self._connections.query(_USERS, (graph, met))
        else:
            rows = self._connections.query(_MET_NEAR, (graph, met, *near))
        numbers.update(row[0] for row in rows)
        return self._grouped(graph_id, numbers, set(records), lambda item: _records(used_by(item)))

    def values(self, graph_id: str, refs: Collection[str]) -> dict[str, Value]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        rows = self._connections.query(_VALUES, (graph, json_list(refs)))
        return {row[0]: self._value(graph_id, *row) for row in rows}

    def search_values(
        self, graph_id: str, text: str, kinds: Collection[str] = (), limit: int = 20
    ) -> list[Value]:
        graph = self._graph(graph_id)
        sought = wanted(text, _MAX_QUERY_TERMS)
        if graph is None or not sought:
            return []
        # kinds are names of ours and terms are quoted: nothing of the text is query syntax
        scopes = " OR ".join(f'"k{kind}"' for kind in semconv.KINDS if not kinds or kind in kinds)
        phrases = [f'"{lead}" *' if is_open else f'"{lead}"' for lead, is_open, _ in sought]
        body = " OR ".join(
            phrase for phrase, each in zip(phrases, sought) for _ in range(each.weight)
        )
        rows = self._connections.query(
            "SELECT v.ref, v.cut, v.verified, v.content FROM value_text t"
            " JOIN value v ON v.id = t.rowid WHERE value_text MATCH ?"
            " ORDER BY bm25(value_text, 0.0, 1.0), v.ref LIMIT ?",
            (f'scope : "g{graph}" AND scope : ({scopes}) AND body : ({body})', limit),
        )
        return [self._value(graph_id, *row) for row in rows]

    def sequence(self, processes: Collection[str]) -> dict[str, list[SequenceNumber]]:
        found: dict[str, list[SequenceNumber]] = {}
        for process in processes:
            rows = self._connections.query(
                "SELECT process, number, start_ns, end_ns, farewell FROM sequence"
                " WHERE tenant = ? AND process = ? ORDER BY number",
                (self.tenant, process),
            )
            numbers = [
                SequenceNumber(name, number, start_ns, end_ns, bool(farewell))
                for name, number, start_ns, end_ns, farewell in rows
            ]
            if numbers:
                found[process] = numbers
        return found

    def runs(self, processes: Collection[str]) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for process in processes:
            ends = self._gapless(process)
            if ends is None:
                rows = self._connections.query(_EDGES, (self.tenant, process))
            else:
                rows = self._connections.query(_ENDS, (self.tenant, process, *ends))
            edges = [
                (SequenceNumber(process, number, start_ns, end_ns, bool(farewell)), opens)
                for number, start_ns, end_ns, farewell, opens in rows
            ]
            if edges:
                found[process] = _paired(edges)
        return found

    def _gapless(self, process: str) -> tuple[int, int] | None:
        """The first and the last number of a process when none between is missing. What was
        once found whole stays so: then only later numbers are counted."""
        known = self._whole.get(process, (0, 0))
        first, last, later, parted = self._connections.query(
            _SEQUENCE_FROM, (self.tenant, process, known[1])
        ).fetchone()
        if known[1] and first != known[0]:
            self._whole.pop(process, None)
            return self._gapless(process)
        if last is None or parted or later != last - (known[1] or first - 1):
            return None
        if len(self._whole) >= _PROCESSES_KEPT:
            self._whole.clear()
        self._whole[process] = (first, last)
        return first, last

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
        return self._anywhere(_OF_NAME, (self.tenant, RESPONSE, response_id))

    def conversation_operations(self, conversation_id: str) -> list[Operation]:
        return self._anywhere(_OF_NAME, (self.tenant, CONVERSATION, conversation_id))

    def _anywhere(self, statement: str, parameters: tuple[object, ...]) -> list[Operation]:
        """Operations of any graph, found by a key of their own."""
        return [
            decoded(body, self._place(graph_id, trace, span))
            for graph_id, trace, span, body in self._connections.query(statement, parameters)
        ]

    def _by_record(
        self, graph_id: str, statement: str, records: Collection[str], names: _Names
    ) -> dict[str, list[Operation]]:
        graph = self._graph(graph_id)
        if graph is None:
            return {}
        numbers = self._numbers(statement, graph, records)
        return self._grouped(graph_id, numbers, set(records), names)

    def _numbers(self, statement: str, graph: int, records: Collection[str]) -> set[int]:
        keys = json_list(encoding.name_key(record) for record in records)
        return {row[0] for row in self._connections.query(statement, (graph, keys))}

    def _grouped(
        self, graph_id: str, numbers: Collection[int], wanted: set[str], names: _Names
    ) -> dict[str, list[Operation]]:
        """Operations by the wanted names they carry: this also drops digest collisions."""
        grouped: dict[str, list[Operation]] = defaultdict(list)
        loaded = self._load(graph_id, numbers).values()
        for operation in sorted(loaded, key=lambda o: (o.start_ns, o.trace_id, o.span_id)):
            for name in wanted.intersection(names(operation)):
                grouped[name].append(operation)
        return dict(grouped)

    def _load(self, graph_id: str, numbers: Collection[int]) -> dict[int, Operation]:
        rows = self._connections.query(_OF_IDS, (json_list(numbers),)) if numbers else ()
        return {
            number: decoded(body, self._place(graph_id, trace, span))
            for number, trace, span, body in rows
        }

    def _graph(self, graph_id: str) -> int | None:
        row = self._connections.query(
            "SELECT id FROM graph WHERE tenant = ? AND graph_id = ?", (self.tenant, graph_id)
        ).fetchone()
        return None if row is None else int(row[0])

    def _place(self, graph_id: str, trace: bytes, span: bytes) -> Place:
        return Place(self.tenant, graph_id, trace.hex(), span.hex())

    def _value(self, graph_id: str, ref: str, cut: int, verified: int, body: bytes) -> Value:
        return Value(
            graph_id=graph_id,
            ref=ref,
            content=encoding.content(body),
            tenant=self.tenant,
            cut=bool(cut),
            verified=bool(verified),
        )


def _records(refs: Iterable[str]) -> set[str]:
    return {variables.record_of(ref) for ref in refs}


def _bytes(identifier: str) -> bytes:
    """The id's bytes; nothing is stored under an id that is not hex."""
    try:
        return bytes.fromhex(identifier)
    except ValueError:
        return b""


def _in_parts(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Keys in parts of few lengths, the last filled up: so few statements are ever prepared."""
    length = next((length for length in _PARTS if length >= len(keys)), _PARTS[-1])
    for start in range(0, len(keys), length):
        part = keys[start : start + length]
        yield [*part, *[part[-1]] * (length - len(part))]


def _paired(edges: Iterable[tuple[SequenceNumber, int]]) -> list[Run]:
    """Runs from their first and last numbers; what opens a run may be all of it."""
    runs: list[Run] = []
    for number, opens in edges:
        if opens:
            runs.append(Run(number, number))
        else:
            runs[-1] = runs[-1]._replace(last=number)
    return runs
