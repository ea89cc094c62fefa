"""Full-text index of the values, in a SQLite file of its own that follows theirs.

It is filled by the process that searches: in the background, and before a search for the graph
that is searched. What was replaced, erased or expired is taken out in the background; until then
it is not found, because the value itself is no more.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Collection
from pathlib import Path

from memtrace_collector.graph import content
from memtrace_collector.graph.facts import Value
from memtrace_collector.graph.terms import terms, wanted
from memtrace_collector.store import keys
from memtrace_collector.store.connections import Connections
from memtrace_collector.store.facts_schema import TEXT
from memtrace_collector.store.sqlite_values import Removed, SqliteValues, Stored
from memtrace_otel import semconv

_CACHE_KIB = 32 * 1024
_CHECKPOINT_PAGES = 4_096
_MAX_QUERY_TERMS = 200
_SLICE = 500
"""Values that one transaction takes in or out."""
_MERGED_PAGES = 500
_GRAPHS_AT_ONCE = 256
_FOUND_AT_ONCE = 100
_VALUES, _REMOVALS, _EPOCH, _SCRUB = "values", "removals", "epoch", "scrub"


class TextIndex:
    """Words of the values of all graphs and tenants. Safe in any number of threads."""

    def __init__(self, path: Path, values: SqliteValues) -> None:
        self._values = values
        self._following = threading.Lock()
        self._connections = Connections(
            path,
            TEXT,
            synchronous="NORMAL",
            cache_kib=_CACHE_KIB,
            checkpoint_pages=_CHECKPOINT_PAGES,
        )
        self._begin_anew_if_other()

    def search(
        self, tenant: str, graph_id: str, text: str, kinds: Collection[str], limit: int
    ) -> list[Value]:
        """See :meth:`~memtrace_collector.graph.reader.GraphReader.search_values`."""
        graph = self._values.graph(tenant, graph_id)
        query = "" if graph is None else _query(graph[0], text, kinds)
        if graph is None or not query:
            return []
        self._complete(*graph)
        rows = self._connections.query(
            "SELECT rowid FROM value_text WHERE value_text MATCH ?"
            " ORDER BY bm25(value_text, 0.0, 1.0), ref",
            (query,),
        )
        found: list[Value] = []
        while len(found) < limit and (ids := [row[0] for row in rows.fetchmany(_FOUND_AT_ONCE)]):
            values = self._values.by_id(tenant, graph_id, ids)
            found.extend(values[each] for each in ids if each in values)
        rows.close()
        return found[:limit]

    def catch_up(self, seconds: float) -> bool:
        """Follow the values for about so long; True while some of it is left."""
        deadline = time.monotonic() + seconds
        with self._following:
            self._begin_anew_if_other()
            return not (
                self._take_out(deadline) and self._take_in(deadline) and self._scrub(deadline)
            )

    def close(self) -> None:
        self._connections.close()

    def _complete(self, graph: int, last: int) -> None:
        """Take in what the graph has up to a number, however long that takes."""
        if self._indexed(graph) >= last:
            return
        with self._following:
            while not self._take_in_slice(graph, last):
                pass

    def _take_in(self, deadline: float) -> bool:
        """All graphs, by the number of their last value, which is then how far all are in."""
        while graphs := self._values.changed_graphs(self._progress(_VALUES), _GRAPHS_AT_ONCE):
            for graph, last in graphs:
                while not self._take_in_slice(graph, last):
                    if time.monotonic() > deadline:
                        return False
            with self._connections.transaction() as connection:
                _put_progress(connection, _VALUES, graphs[-1][1])
        return True

    def _take_in_slice(self, graph: int, last: int) -> bool:
        """Whether the graph is in, up to a number."""
        done = self._indexed(graph)
        if done >= last:
            return True
        values = self._values.of_graph(graph, done, last, _SLICE)
        until = keys.number_of(values[-1].id) if len(values) == _SLICE else last
        with self._connections.transaction() as connection:
            connection.executemany(
                "INSERT INTO value_text(rowid, scope, body, ref) VALUES (?,?,?,?)",
                [_entry(graph, item) for item in values],
            )
            connection.execute("INSERT OR REPLACE INTO indexed VALUES (?,?)", (graph, until))
        return until == last

    def _take_out(self, deadline: float) -> bool:
        while gone := self._values.removals(self._progress(_REMOVALS), _SLICE):
            for removed in gone:
                while not self._take_out_slice(removed):
                    if time.monotonic() > deadline:
                        return False
            with self._connections.transaction() as connection:
                _put_progress(connection, _REMOVALS, gone[-1].number)
        return True

    def _take_out_slice(self, removed: Removed) -> bool:
        """Whether nothing of the range is in any more."""
        graph = keys.graph_of(removed.first)
        with self._connections.transaction() as connection:
            taken = connection.execute(
                "DELETE FROM value_text WHERE rowid IN"
                " (SELECT rowid FROM value_text WHERE rowid BETWEEN ? AND ? LIMIT ?)",
                (removed.first, removed.last, _SLICE),
            ).rowcount
            if (removed.first, removed.last) == keys.row_ids(graph):
                connection.execute("DELETE FROM indexed WHERE graph = ?", (graph,))
                _put_progress(connection, _SCRUB, 1)
        return taken < _SLICE

    def _scrub(self, deadline: float) -> bool:
        """After an erasure: FTS5 keeps words of deleted rows until it has merged all parts."""
        if not self._progress(_SCRUB):
            return True
        pages = -_MERGED_PAGES
        while True:
            with self._connections.transaction() as connection:
                before = connection.total_changes
                connection.execute(
                    "INSERT INTO value_text(value_text, rank) VALUES ('merge', ?)", (pages,)
                )
                is_merged = connection.total_changes - before < 2  # as FTS5's manual says
            if is_merged:
                break
            pages = _MERGED_PAGES
            if time.monotonic() > deadline:
                return False
        with self._connections.transaction() as connection:
            _put_progress(connection, _SCRUB, 0)
        self._connections.empty_wal()
        return True

    def _begin_anew_if_other(self) -> None:
        """The values' file was made anew, or removals were forgotten before they were followed."""
        epoch, (first, last) = self._values.epoch, self._values.removals_kept()
        if self._progress(_EPOCH) == epoch and first <= self._progress(_REMOVALS) + 1:
            return
        with self._connections.transaction() as connection:
            connection.execute("DELETE FROM value_text")
            connection.execute("DELETE FROM indexed")
            connection.execute("DELETE FROM progress")
            _put_progress(connection, _EPOCH, epoch)
            _put_progress(connection, _REMOVALS, last)

    def _progress(self, name: str) -> int:
        row = self._connections.query(
            "SELECT value FROM progress WHERE name = ?", (name,)
        ).fetchone()
        return int(row[0]) if row else 0

    def _indexed(self, graph: int) -> int:
        row = self._connections.query(
            "SELECT last FROM indexed WHERE graph = ?", (graph,)
        ).fetchone()
        return int(row[0]) if row else 0


def _put_progress(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute("INSERT OR REPLACE INTO progress VALUES (?,?)", (name, value))


def _entry(graph: int, stored: Stored) -> tuple[int, str, str, str]:
    kind = stored.value.ref.partition(":")[0]
    # terms that confine a search to a graph and a kind, and those of the text
    body = " ".join(terms(content.plain_text(stored.value)))
    return stored.id, f"g{graph} k{kind}", body, stored.value.ref


def _query(graph: int, text: str, kinds: Collection[str]) -> str:
    """An FTS5 query; empty when nothing is sought. Kinds are names of ours and terms are quoted:
    nothing of the text is query syntax."""
    sought = wanted(text, _MAX_QUERY_TERMS)
    scopes = " OR ".join(f'"k{kind}"' for kind in semconv.KINDS if not kinds or kind in kinds)
    if not sought or not scopes:
        return ""
    phrases = [f'"{lead}" *' if is_open else f'"{lead}"' for lead, is_open, _ in sought]
    body = " OR ".join(phrase for phrase, each in zip(phrases, sought) for _ in range(each.weight))
    return f'scope : "g{graph}" AND scope : ({scopes}) AND body : ({body})'
