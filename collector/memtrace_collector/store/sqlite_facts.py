"""The embedded fact store: SQLite files beside each other, rebuilt from the log at will.

``facts.db`` holds operations, flags and numbers, ``facts.values.db`` the values, and
``facts.text.db`` their full-text index. The first two are written by whoever projects the log,
the last by whoever searches.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.graph import fingerprint
from memtrace_collector.graph.facts import DEFAULT_TENANT, OperationKey, SpanFacts, Value
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store import encoding, facts_eraser, facts_schema, keys
from memtrace_collector.store.base import Applied, Change, Changes, ErasedFacts
from memtrace_collector.store.connections import Connections, json_list
from memtrace_collector.store.facts_reader import SqliteGraphReader
from memtrace_collector.store.facts_writer import BatchWriter
from memtrace_collector.store.gathering import gather
from memtrace_collector.store.recent import RecentOperations
from memtrace_collector.store.sqlite_values import SqliteValues
from memtrace_collector.store.text_index import TextIndex
from memtrace_collector.store.user_index import UserIndex

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
_POSITIONS = (
    "SELECT o.trace, o.span, g.tenant, s.segment, s.position FROM json_each(?) wanted"
    " CROSS JOIN span s ON s.key = wanted.value"
    " JOIN operation o ON o.id = s.operation JOIN graph g ON g.id = s.operation >> 36"
)


class FactFiles(NamedTuple):
    """The files of one store (each with ``-wal`` and ``-shm`` beside it while it is open)."""

    facts: Path
    values: Path
    text: Path


def files_of(path: Path) -> FactFiles:
    """The files of the store whose first is ``path``."""
    suffix = path.suffix
    return FactFiles(path, path.with_suffix(f".values{suffix}"), path.with_suffix(f".text{suffix}"))


class _Shared:
    """What the objects of all tenants have in common."""

    def __init__(self, path: Path, cache_kib: int, writable: bool) -> None:
        self.files = files_of(path)
        self.graph_keys: dict[tuple[str, str], int] = {}
        self._opening = threading.Lock()
        self._text: TextIndex | None = None
        with contextlib.ExitStack() as opened:
            self.connections = Connections(
                path,
                facts_schema.FACTS,
                synchronous="NORMAL",
                cache_kib=cache_kib,
                checkpoint_pages=_CHECKPOINT_PAGES,
                writable=writable,
            )
            opened.callback(self.connections.close)
            self.values = SqliteValues(
                self.files.values, cache_kib=cache_kib // 4, writable=writable
            )
            if writable:
                _read_again_if_lost(self.connections, self.values.epoch)
            opened.pop_all()
        self.users = UserIndex(self.connections)
        self.recent = RecentOperations()

    @property
    def text(self) -> TextIndex:
        """Opened by the first who searches: one process at most may."""
        with self._opening:
            if self._text is None:
                self._text = TextIndex(self.files.text, self.values)
            return self._text

    def close(self) -> None:
        with self._opening:
            if self._text is not None:
                self._text.close()
        self.values.close()
        self.connections.close()


class SqliteFactStore(SqliteGraphReader):
    """Implements :class:`~memtrace_collector.store.base.FactStore`.

    ``synchronous=NORMAL``: after a power cut the file may miss the last batches, whose cursor is
    then missing with them; their values are not, and are found again.

    Args:
        path: the file of the facts; the others are named after it.
        tenant: whose facts are read.
        cache_kib: page cache of the writer.
        writable: False reads what another process writes; it never writes or checkpoints the
            facts or the values, and waits a moment for their files.

    Raises:
        DamagedError: a file is no SQLite database, or a damaged one.
        WrongUseError: a newer release wrote it.
        NotFoundError: it is not there, or of an older release (not ``writable`` only).
    """

    def __init__(
        self,
        path: Path,
        *,
        tenant: str = DEFAULT_TENANT,
        cache_kib: int = _CACHE_KIB,
        writable: bool = True,
    ) -> None:
        self._use(_Shared(path, cache_kib, writable), tenant)

    @property
    def files(self) -> FactFiles:
        return self._shared.files

    def _use(self, shared: _Shared, tenant: str) -> None:
        super().__init__(shared.connections, shared.users, shared.values, shared.recent, tenant)
        self._shared = shared

    def for_tenant(self, tenant: str) -> SqliteFactStore:
        store = object.__new__(SqliteFactStore)
        store._use(self._shared, tenant)
        return store

    def tenants(self) -> list[str]:
        rows = self._connections.query("SELECT DISTINCT tenant FROM graph ORDER BY tenant")
        return [row[0] for row in rows]

    def apply(self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition) -> Applied:
        gathered = gather(batch)
        self._values.put(gathered.values.values())
        graph_keys = self._shared.graph_keys
        try:
            with self._connections.transaction() as connection:
                applied = BatchWriter(connection, graph_keys).apply(gathered)
                _put_cursor(connection, _PROJECTION, cursor)
        except BaseException:
            # the keys of graphs that were rolled back may be given to others
            graph_keys.clear()
            raise
        return applied

    def erase(self, graph_id: str | None) -> ErasedFacts:
        """See the protocol.

        Raises:
            sqlite3.OperationalError: somebody reads, so that erased rows are left in the
                write-ahead log. Another call removes them.
        """
        values = self._values.erase(self.tenant, graph_id)
        if graph_id is None:
            operations, flags = facts_eraser.erase_tenant(self._connections, self.tenant)
        else:
            operations, flags = facts_eraser.erase_graph(self._connections, self.tenant, graph_id)
        self._shared.graph_keys.clear()
        self._shared.recent.clear()
        self._connections.empty_wal()
        return ErasedFacts(operations, values, flags)

    def expire_values(self, before_ns: int) -> int:
        return self._values.expire(before_ns)

    def tidy(self, seconds: float) -> bool:
        return self._users.fill(seconds)

    def index_text(self, seconds: float) -> bool:
        """Let the full-text index follow the values for about so long; True while some is left.

        Searches are complete without it, and faster with it. Called in the process that
        searches, when idle, and after an erasure until it is False: only then no word is left.
        """
        return self._shared.text.catch_up(seconds)

    def search_values(
        self, graph_id: str, text: str, kinds: Collection[str] = (), limit: int = 20
    ) -> list[Value]:
        return self._shared.text.search(self.tenant, graph_id, text, kinds, limit)

    def cursor(self, name: str = _PROJECTION) -> LogPosition:
        row = self._connections.query(
            "SELECT segment, position FROM cursor WHERE name = ?", (name,)
        ).fetchone()
        return LogPosition(*row) if row else START

    def set_cursor(self, name: str, position: LogPosition) -> None:
        with self._connections.transaction() as connection:
            _put_cursor(connection, name, position)

    def first_position(self, keys_: Iterable[OperationKey]) -> dict[OperationKey, LogPosition]:
        wanted = {key: keys.span_key(self.tenant, *key) for key in keys_}
        rows = self._connections.query(_POSITIONS, (json_list(sorted(set(wanted.values()))),))
        found = {
            OperationKey(trace.hex(), span.hex()): LogPosition(segment, position)
            for trace, span, tenant, segment, position in rows
            if tenant == self.tenant
        }
        return {key: position for key, position in found.items() if key in wanted}

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
            self.all_operations(graph_id),
            self._values.all_values(self.tenant, graph_id),
            self.flags(graph_id),
        )

    def close(self) -> None:
        self._shared.close()

    def _counter(self, name: str) -> int:
        row = self._connections.query(
            "SELECT value FROM counter WHERE name = ?", (name,)
        ).fetchone()
        return int(row[0]) if row else 0

    def _nth(self, statement: str, after: int, limit: int) -> int | None:
        row = self._connections.query(statement, (self.tenant, after, limit - 1)).fetchone()
        return int(row[0]) if row else None


def _read_again_if_lost(connections: Connections, values_epoch: int) -> None:
    """Facts whose values are in no file any more: the log has both, and starts over."""
    with connections.transaction() as connection:
        known = connection.execute(
            "SELECT value FROM counter WHERE name = 'values_epoch'"
        ).fetchone()
        if known is not None and known[0] != values_epoch:
            connection.execute("DELETE FROM cursor WHERE name = ?", (_PROJECTION,))
        connection.execute(
            "INSERT OR REPLACE INTO counter VALUES ('values_epoch', ?)", (values_epoch,)
        )


def _put_cursor(connection: sqlite3.Connection, name: str, position: LogPosition) -> None:
    connection.execute("INSERT OR REPLACE INTO cursor VALUES (?,?,?)", (name, *position))
