"""The embedded fact store: one SQLite file, rebuilt from the log at will."""

from __future__ import annotations

import copy
import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from memtrace_collector.graph import fingerprint
from memtrace_collector.graph.facts import DEFAULT_TENANT, OperationKey, SpanFacts, Value
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store import encoding, facts_schema
from memtrace_collector.store.base import Applied, Change, Changes, ErasedFacts
from memtrace_collector.store.connections import Connections
from memtrace_collector.store.facts_reader import SqliteGraphReader
from memtrace_collector.store.facts_writer import BatchWriter

_CACHE_KIB = 128 * 1024
_CHECKPOINT_PAGES = 16_384
_PROJECTION = "projection"
_CHANGED_FLAGS = (
    "SELECT body FROM flag WHERE tenant = ? AND changed > ? AND changed <= ?"
    " ORDER BY changed, origin"
)
_CHANGED_GRAPHS = (
    "SELECT graph_id FROM graph WHERE tenant = ? AND changed > ? AND changed <= ?"
    " ORDER BY changed, graph_id"
)
_NTH_FLAG = (
    "SELECT changed FROM flag WHERE tenant = ? AND changed > ? ORDER BY changed LIMIT 1 OFFSET ?"
)
_NTH_GRAPH = (
    "SELECT changed FROM graph WHERE tenant = ? AND changed > ? ORDER BY changed LIMIT 1 OFFSET ?"
)


class SqliteFactStore(SqliteGraphReader):
    """Implements :class:`~memtrace_collector.store.base.FactStore`.

    Facts of every tenant are written; the reads of this object are those of ``tenant``.
    ``synchronous=NORMAL``: after a power cut the file may
    miss the last batches, whose cursor is then missing with them.
    """

    def __init__(
        self, path: Path, *, tenant: str = DEFAULT_TENANT, cache_kib: int = _CACHE_KIB
    ) -> None:
        connections = Connections(
            path,
            facts_schema.FACTS,
            synchronous="NORMAL",
            cache_kib=cache_kib,
            checkpoint_pages=_CHECKPOINT_PAGES,
        )
        super().__init__(connections, tenant)
        self._graph_keys: dict[tuple[str, str], int] = {}

    def for_tenant(self, tenant: str) -> SqliteFactStore:
        store = copy.copy(self)
        store.tenant = tenant
        return store

    def tenants(self) -> list[str]:
        rows = self._connections.query("SELECT DISTINCT tenant FROM graph ORDER BY tenant")
        return [row[0] for row in rows]

    def apply(self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition) -> Applied:
        try:
            with self._connections.transaction() as connection:
                applied = BatchWriter(connection, self._graph_keys).apply(batch)
                _put_cursor(connection, _PROJECTION, cursor)
        except BaseException:
            # the keys of graphs that were rolled back may be given to others
            self._graph_keys.clear()
            raise
        return applied

    def erase(self, graph_id: str | None) -> ErasedFacts:
        raise NotImplementedError

    def expire_values(self, before_ns: int) -> int:
        raise NotImplementedError

    def tidy(self, seconds: float) -> bool:
        raise NotImplementedError(seconds)

    def cursor(self, name: str = _PROJECTION) -> LogPosition:
        row = self._connections.query(
            "SELECT segment, position FROM cursor WHERE name = ?", (name,)
        ).fetchone()
        return LogPosition(*row) if row else START

    def set_cursor(self, name: str, position: LogPosition) -> None:
        with self._connections.transaction() as connection:
            _put_cursor(connection, name, position)

    def first_position(self, keys: Iterable[OperationKey]) -> dict[OperationKey, LogPosition]:
        found = {}
        for key in keys:
            row = self._connections.query(
                "SELECT segment, position FROM span WHERE tenant = ? AND trace = ? AND span = ?",
                (self.tenant, bytes.fromhex(key.trace_id), bytes.fromhex(key.span_id)),
            ).fetchone()
            if row is not None:
                found[key] = LogPosition(*row)
        return found

    def changes(self, since: Change | None, limit: int = 1_000) -> Changes:
        epoch, last = self._counter("epoch"), self._counter("change")
        after = since.number if since is not None and since.epoch == epoch else -1
        ends = [self._nth(each, after, limit) for each in (_NTH_FLAG, _NTH_GRAPH)]
        until = min([last, *(end for end in ends if end is not None)])
        span = (self.tenant, after, until)
        flags = self._connections.query(_CHANGED_FLAGS, span)
        graphs = self._connections.query(_CHANGED_GRAPHS, span)
        return Changes(
            flags=tuple(encoding.flag(row[0]) for row in flags),
            graph_ids=tuple(row[0] for row in graphs),
            until=Change(epoch, until),
            is_all=until == last,
        )

    def flag_counts(self) -> dict[str, int]:
        rows = self._connections.query("SELECT body FROM flag WHERE tenant = ?", (self.tenant,))
        return dict(Counter(encoding.flag(row[0]).source for row in rows))

    def graph_hash(self, graph_id: str) -> str:
        return fingerprint.graph_hash(
            self.all_operations(graph_id), self._all_values(graph_id), self.flags(graph_id)
        )

    def close(self) -> None:
        self._connections.close()

    def _counter(self, name: str) -> int:
        row = self._connections.query(
            "SELECT value FROM counter WHERE name = ?", (name,)
        ).fetchone()
        return int(row[0]) if row else 0

    def _nth(self, statement: str, after: int, limit: int) -> int | None:
        row = self._connections.query(statement, (self.tenant, after, limit - 1)).fetchone()
        return int(row[0]) if row else None

    def _all_values(self, graph_id: str) -> Iterable[Value]:
        rows = self._connections.query(
            "SELECT ref, cut, verified, content FROM value WHERE graph = ?",
            (self._graph(graph_id),),
        )
        return (self._value(graph_id, *row) for row in rows)


def _put_cursor(connection: sqlite3.Connection, name: str, position: LogPosition) -> None:
    connection.execute("INSERT OR REPLACE INTO cursor VALUES (?,?,?)", (name, *position))
