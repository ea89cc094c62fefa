"""The fact store in PostgreSQL 15 or later: for several processes over one store."""

from __future__ import annotations

import copy
import struct
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from memtrace_collector.graph import fingerprint
from memtrace_collector.graph.facts import DEFAULT_TENANT, OperationKey, SpanFacts
from memtrace_collector.log.position import ELSEWHERE, START, LogPosition
from memtrace_collector.store import encoding
from memtrace_collector.store.base import Applied, Change, Changes, ErasedFacts
from memtrace_collector.store.erasures import Erasure
from memtrace_collector.store.postgres import erase, erasures, graphs, keys, search, upkeep
from memtrace_collector.store.postgres.batch import Batch, gather
from memtrace_collector.store.postgres.database import Connection, Database
from memtrace_collector.store.postgres.facts_reader import PostgresGraphReader
from memtrace_collector.store.postgres.facts_schema import FACTS
from memtrace_collector.store.postgres.facts_writer import BatchWriter

_PROJECTION = "projection"
_GRAPHS_KEPT = 1 << 16
_BAD_DATA = (psycopg.DataError, struct.error)
"""What a fact that no row can hold raises: a number beyond 64 bits, say."""
_LOG = (
    "INSERT INTO log(name) VALUES (%s) ON CONFLICT DO NOTHING",
    "SELECT id FROM log WHERE name = %s",
)
_PUT_CURSOR = (
    "INSERT INTO cursor VALUES (%s, %s, %s, %s) ON CONFLICT (log, name) DO UPDATE"
    " SET segment = excluded.segment, position = excluded.position"
)
_FIRST = (
    "SELECT s.trace, s.span, s.log, s.segment, s.position"
    " FROM unnest(%s::bytea[], %s::bytea[]) AS k(trace, span)"
    " JOIN span s ON s.tenant = %s AND s.trace = k.trace AND s.span = k.span"
)
_LAST = (
    "SELECT (SELECT value FROM counter WHERE name = 'epoch'),"
    " (SELECT value FROM counter WHERE name = 'change')"
)
_CHANGED_FLAGS = (
    "SELECT body FROM flag WHERE tenant = %s AND changed > %s AND changed <= %s"
    " ORDER BY changed, origin"
)
_CHANGED_GRAPHS = (
    "SELECT name FROM graph WHERE tenant = %s AND changed > %s AND changed <= %s"
    " ORDER BY changed, name"
)
_NTH_FLAG = (
    "SELECT changed FROM flag WHERE tenant = %s AND changed > %s ORDER BY changed LIMIT 1 OFFSET %s"
)
_NTH_GRAPH = (
    "SELECT changed FROM graph WHERE tenant = %s AND changed > %s ORDER BY changed"
    " LIMIT 1 OFFSET %s"
)


class PostgresFactStore(PostgresGraphReader):
    """Implements :class:`~memtrace_collector.store.base.FactStore`.

    Args:
        dsn: a ``postgresql://`` URL.
        log_id: names the log whose positions are meant; each processor has one of its own.
        tenant: whose facts are read. Facts of every tenant are written.

    Raises:
        ConfigError: the URL cannot be read.
        UnreachableError: nobody answers there, or refuses us.
        WrongUseError: a newer release made the tables.
    """

    def __init__(self, dsn: str, *, log_id: str = "", tenant: str = DEFAULT_TENANT) -> None:
        super().__init__(Database(dsn, FACTS), tenant)
        self._log_id = log_id
        self._log: int | None = None
        self._made: set[tuple[str, str]] = set()
        self._grown: set[int] | None = None
        """Graphs that may have become long since :meth:`tidy` looked; None: any."""

    def for_tenant(self, tenant: str) -> PostgresFactStore:
        store = copy.copy(self)
        store.bind(tenant)
        return store

    def apply(self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition) -> Applied:
        """See :meth:`FactStore.apply`. After a lost connection the batch is applied again; if
        it had been, all of it is then counted as duplicates.

        Raises:
            ValueError: a fact cannot be stored; nothing was.
            UnreachableError: the server went away and did not come back in time.
        """
        log = self._log_key()
        gathered = gather(batch)

        def write(connection: Connection) -> Applied:
            applied = BatchWriter(connection, log).write(gathered)
            connection.execute(_PUT_CURSOR, (log, _PROJECTION, *cursor))
            return applied

        try:
            self._make_graphs(gathered)
            applied = self._database.transaction(write)
        except _BAD_DATA as error:
            raise ValueError(f"a fact that cannot be stored: {error}") from error
        if self._grown is not None and len(self._grown) < _GRAPHS_KEPT:
            self._grown.update(keys.graph_key(*name) for name in gathered.graphs)
        else:
            self._grown = None
        return applied

    def erase(self, graph_id: str | None) -> ErasedFacts:
        """See :meth:`FactStore.erase`. Nothing can read what is gone; the server writes over its
        bytes in time, or at once when the operator calls ``VACUUM FULL``."""
        if graph_id is None:
            return erase.erase_tenant(self._database, self.tenant)
        return erase.erase_graph(self._database, self.tenant, graph_id)

    def order_erasure(self, erasure: Erasure) -> None:
        """See :class:`~memtrace_collector.store.erasures.ErasureOrders`."""
        erasures.give(self._database, erasure)

    def open_erasures(self) -> list[Erasure]:
        self._log_key()
        return erasures.open_for(self._database, self._log_id)

    def confirm_erasure(self, order_id: str, report: Mapping[str, object]) -> None:
        erasures.confirm(self._database, order_id, self._log_id, report)

    def leave_out(self, order_id: str, log_id: str) -> None:
        erasures.leave_out(self._database, order_id, log_id)

    def erasure_waits_for(self, order_id: str) -> list[str]:
        return erasures.waiting_for(self._database, order_id)

    def erasure_reports(self, order_id: str) -> list[tuple[str, dict[str, Any]]]:
        return erasures.reports(self._database, order_id)

    def expire_values(self, before_ns: int) -> int:
        return erase.expire_values(self._database, before_ns)

    def tidy(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._database.transaction(self._index_some):
                continue
            self._grown = set()
            if not self._database.transaction(search.make_some_searchable):
                return False
        return True

    def cursor(self, name: str = _PROJECTION) -> LogPosition:
        rows = self._database.query(
            "SELECT segment, position FROM cursor WHERE log = %s AND name = %s",
            (self._log_key(), name),
        )
        return LogPosition(*rows[0]) if rows else START

    def set_cursor(self, name: str, position: LogPosition) -> None:
        self._database.change(_PUT_CURSOR, (self._log_key(), name, *position))

    def first_position(self, keys_: Iterable[OperationKey]) -> dict[OperationKey, LogPosition]:
        """``ELSEWHERE`` for what another log saw first."""
        wanted = list(keys_)
        traces = [bytes.fromhex(key.trace_id) for key in wanted]
        spans = [bytes.fromhex(key.span_id) for key in wanted]
        rows = self._database.query(_FIRST, (traces, spans, keys.name_bytes(self.tenant)))
        log = self._log_key()
        return {
            OperationKey(trace.hex(), span.hex()): (
                LogPosition(segment, offset) if its_log == log else ELSEWHERE
            )
            for trace, span, its_log, segment, offset in rows
        }

    def changes(self, since: Change | None, limit: int = 1_000) -> Changes:
        return self._database.snapshot(lambda connection: self._changes(connection, since, limit))

    def _changes(self, connection: Connection, since: Change | None, limit: int) -> Changes:
        ((epoch, last),) = connection.execute(_LAST).fetchall()
        tenant = keys.name_bytes(self.tenant)
        after = since.number if since is not None and since.epoch == epoch else 0
        ends = [
            row[0]
            for statement in (_NTH_FLAG, _NTH_GRAPH)
            for row in connection.execute(statement, (tenant, after, limit - 1))
        ]
        until = min([last, *ends])
        span = (tenant, after, until)
        flags = connection.execute(_CHANGED_FLAGS, span, binary=True).fetchall()
        names = connection.execute(_CHANGED_GRAPHS, span, binary=True).fetchall()
        return Changes(
            flags=tuple(encoding.flag(row[0]) for row in flags),
            graph_ids=tuple(row[0].decode() for row in names),
            until=Change(epoch, until),
            is_all=until == last,
        )

    def flag_counts(self) -> dict[str, int]:
        return dict(Counter(flag.source for flag in self.flags()))

    def graph_hash(self, graph_id: str) -> str:
        return fingerprint.graph_hash(
            self.all_operations(graph_id), self._all_values(graph_id), self.flags(graph_id)
        )

    def close(self) -> None:
        self._database.close()

    def _log_key(self) -> int:
        if self._log is None:
            put, get = _LOG
            self._database.change(put, (self._log_id,))
            self._log = int(self._database.query(get, (self._log_id,))[0][0])
        return self._log

    def _index_some(self, connection: Connection) -> bool:
        return upkeep.index_some(connection, self._grown)

    def _make_graphs(self, batch: Batch) -> None:
        """Before the transaction, so that no other waits for its end to write to a new graph."""
        missing = batch.graphs - self._made
        if not missing:
            return
        self._database.transaction(lambda connection: graphs.hold(connection, missing))
        if len(self._made) + len(missing) > _GRAPHS_KEPT:
            self._made.clear()
        self._made |= missing
