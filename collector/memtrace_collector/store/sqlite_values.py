"""Values in a SQLite file of their own, with a retention of their own.

Graphs have keys of this file, so that it is whole in itself: values are on disk (``synchronous``
is FULL) before the facts that came with them, which a crash may take back.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.graph import merge
from memtrace_collector.graph.facts import Value
from memtrace_collector.store import encoding, keys
from memtrace_collector.store.connections import Connections, json_list, take_numbers
from memtrace_collector.store.facts_schema import VALUES
from memtrace_collector.store.facts_writer import graph_key
from memtrace_collector.store.gathering import TimedValue

_CHECKPOINT_PAGES = 8_192
_SLICE = 2_000
"""Rows that one transaction removes."""
_REMOVALS_KEPT = 100_000
_OF_REFS = (
    "SELECT v.id, v.ref, v.cut, v.verified, v.at_ns, v.content"
    " FROM json_each(?1) wanted CROSS JOIN value_of k ON k.graph = ?2 AND k.ref = wanted.value"
    " JOIN value v ON v.id = ?2 << 36 | k.number"
)
_OF_IDS = (
    "SELECT id, ref, cut, verified, at_ns, content"
    " FROM value WHERE id IN (SELECT value FROM json_each(?))"
)
_BETWEEN = (
    "SELECT id, ref, cut, verified, at_ns, content"
    " FROM value WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
)


_New = tuple[int, int, TimedValue]
"""Graph, key of the reference, value."""


class Stored(NamedTuple):
    """A value where it stands."""

    id: int
    at_ns: int
    value: Value


class Removed(NamedTuple):
    """Ids that are no more, both ends included; ``number`` orders removals."""

    number: int
    first: int
    last: int


class SqliteValues:
    """The values of all graphs and tenants. Safe in any number of threads."""

    def __init__(self, path: Path, *, cache_kib: int, writable: bool = True) -> None:
        self.connections = Connections(
            path,
            VALUES,
            synchronous="FULL",
            cache_kib=cache_kib,
            checkpoint_pages=_CHECKPOINT_PAGES,
            writable=writable,
        )

    def put(self, values: Iterable[TimedValue]) -> None:
        """Keep of each reference the value that wins and the latest time."""
        by_graph: dict[tuple[str, str], dict[str, TimedValue]] = defaultdict(dict)
        for item in values:
            by_graph[item.value.tenant, item.value.graph_id][item.value.ref] = item
        if not by_graph:
            return
        with self.connections.transaction() as connection:
            new: list[_New] = []
            for (tenant, graph_id), wanted in by_graph.items():
                graph = graph_key(connection, tenant, graph_id)
                new += _winners(connection, graph, wanted)
            _insert(connection, sorted(new, key=itemgetter(0)))

    def values(self, tenant: str, graph_id: str, refs: Collection[str]) -> dict[str, Value]:
        graph = self.graph(tenant, graph_id)
        if graph is None:
            return {}
        rows = self.connections.query(_OF_REFS, _wanted(graph[0], refs))
        found = (_stored(tenant, graph_id, row).value for row in rows)
        asked = set(refs)
        return {value.ref: value for value in found if value.ref in asked}

    def by_id(self, tenant: str, graph_id: str, ids: Collection[int]) -> dict[int, Value]:
        """Those that are (still) there; the ids are of this graph."""
        rows = self.connections.query(_OF_IDS, (json_list(ids),))
        return {row[0]: _stored(tenant, graph_id, row).value for row in rows}

    def all_values(self, tenant: str, graph_id: str) -> Iterator[Value]:
        graph = self.graph(tenant, graph_id)
        if graph is not None:
            for row in self.connections.query(_BETWEEN, (*keys.row_ids(graph[0]), -1)):
                yield _stored(tenant, graph_id, row).value

    def expire(self, before_ns: int) -> int:
        """See :meth:`~memtrace_collector.store.base.FactStore.expire_values`."""
        return sum(
            self._remove(
                "SELECT id, ref FROM value WHERE at_ns < ? ORDER BY at_ns LIMIT ?",
                (before_ns, _SLICE),
            )
        )

    def erase(self, tenant: str, graph_id: str | None) -> int:
        """Remove a graph's values, or all of the tenant's; how many there were."""
        rows = self.connections.query(
            "SELECT id FROM graph WHERE tenant = ?1 AND (?2 IS NULL OR graph_id = ?2)",
            (tenant, graph_id),
        ).fetchall()
        erased = 0
        for (graph,) in rows:
            ids = keys.row_ids(graph)
            erased += sum(
                self._remove("SELECT id, ref FROM value WHERE id BETWEEN ? AND ? LIMIT ?",
                             (*ids, _SLICE))
            )  # fmt: skip
            with self.connections.transaction() as connection:
                connection.execute("INSERT INTO removed(first, last) VALUES (?,?)", ids)
                connection.execute("DELETE FROM graph WHERE id = ?", (graph,))
        if rows:
            self.connections.empty_wal()
        return erased

    def _remove(self, statement: str, parameters: tuple[int, ...]) -> Iterator[int]:
        """Remove what the statement selects, slice by slice; how many each time."""
        while True:
            with self.connections.transaction() as connection:
                rows = connection.execute(statement, parameters).fetchall()
                _remove(connection, rows)
                connection.execute(
                    "DELETE FROM removed WHERE number <= (SELECT max(number) FROM removed) - ?",
                    (_REMOVALS_KEPT,),
                )
            yield len(rows)
            if not rows:
                return

    # for an index that follows

    @property
    def epoch(self) -> int:
        """Names the life of the file."""
        row = self.connections.query("SELECT value FROM counter WHERE name = 'epoch'").fetchone()
        return int(row[0])

    def graph(self, tenant: str, graph_id: str) -> tuple[int, int] | None:
        """Key of a graph and number of its last value."""
        row = self.connections.query(
            "SELECT id, last FROM graph WHERE tenant = ? AND graph_id = ?", (tenant, graph_id)
        ).fetchone()
        return None if row is None else (int(row[0]), int(row[1]))

    def changed_graphs(self, after: int, limit: int) -> list[tuple[int, int]]:
        """Graphs whose last value has a greater number, and that, in its order."""
        return self.connections.query(
            "SELECT id, last FROM graph WHERE last > ? ORDER BY last LIMIT ?", (after, limit)
        ).fetchall()

    def of_graph(self, graph: int, after: int, until: int, limit: int) -> list[Stored]:
        """Values by number, from ``after`` (excluded) to ``until``. Tenant and graph stay empty."""
        span = keys.row_id(graph, after + 1), keys.row_id(graph, until)
        rows = self.connections.query(_BETWEEN, (*span, limit))
        return [_stored("", "", row) for row in rows]

    def removals(self, after: int, limit: int) -> list[Removed]:
        rows = self.connections.query(
            "SELECT number, first, last FROM removed WHERE number > ? ORDER BY number LIMIT ?",
            (after, limit),
        )
        return [Removed(*row) for row in rows]

    def removals_kept(self) -> tuple[int, int]:
        """Numbers of the first and the last removal that are remembered; 0 when none is."""
        row = self.connections.query(
            "SELECT ifnull(min(number), 0), ifnull(max(number), 0) FROM removed"
        ).fetchone()
        return int(row[0]), int(row[1])

    def close(self) -> None:
        self.connections.close()


def _winners(
    connection: sqlite3.Connection, graph: int, wanted: dict[str, TimedValue]
) -> list[_New]:
    """Of the values for one graph those to be written; what they beat is removed."""
    ref_keys = {ref: keys.ref_key(ref) for ref in wanted}
    rows = connection.execute(_OF_REFS, (json_list(ref_keys.values()), graph)).fetchall()
    beaten: list[tuple[int, str]] = []
    for row in rows:
        stored = _stored("", "", row)
        new = wanted.get(stored.value.ref)
        if new is None:
            continue  # another reference with the same key
        at_ns = max(new.at_ns, stored.at_ns)
        if merge.value_wins(new.value, stored.value):
            beaten.append((stored.id, stored.value.ref))
            wanted[stored.value.ref] = new._replace(at_ns=at_ns)
            continue
        del wanted[stored.value.ref]
        if at_ns > stored.at_ns:
            connection.execute("UPDATE value SET at_ns = ? WHERE id = ?", (at_ns, stored.id))
    _remove(connection, beaten)
    return [(graph, ref_keys[ref], item) for ref, item in wanted.items()]


def _insert(connection: sqlite3.Connection, new: list[_New]) -> None:
    """Write values, which come by graph."""
    if not new:
        return
    numbered = list(enumerate(new, take_numbers(connection, "value", len(new))))
    connection.executemany(
        "INSERT INTO value VALUES (?,?,?,?,?,?)",
        [
            (
                keys.row_id(graph, number),
                *(value.ref, value.cut, value.verified, at_ns),
                encoding.value_content(value),
            )
            for number, (graph, _, (value, at_ns)) in numbered
        ],
    )
    connection.executemany(
        "INSERT INTO value_of VALUES (?,?,?)",
        sorted((graph, ref_key, number) for number, (graph, ref_key, _) in numbered),
    )
    last = {graph: number for number, (graph, _, _) in numbered}
    connection.executemany(
        "UPDATE graph SET last = ? WHERE id = ?",
        [(number, graph) for graph, number in last.items()],
    )


def _remove(connection: sqlite3.Connection, rows: Collection[tuple[int, str]]) -> None:
    """Remove values of these ids and references, and remember that they are gone."""
    if not rows:
        return
    connection.executemany("DELETE FROM value WHERE id = ?", [(row_id,) for row_id, _ in rows])
    connection.executemany(
        "DELETE FROM value_of WHERE graph = ? AND ref = ? AND number = ?",
        [
            (keys.graph_of(row_id), keys.ref_key(ref), keys.number_of(row_id))
            for row_id, ref in rows
        ],
    )
    connection.executemany(
        "INSERT INTO removed(first, last) VALUES (?,?)",
        _ranges(sorted(row_id for row_id, _ in rows)),
    )


def _ranges(ids: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending ids as ranges without gaps."""
    ranges: list[tuple[int, int]] = []
    for each in ids:
        if ranges and each == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], each)
        else:
            ranges.append((each, each))
    return ranges


def _wanted(graph: int, refs: Iterable[str]) -> tuple[str, int]:
    return json_list({keys.ref_key(ref) for ref in refs}), graph


def _stored(tenant: str, graph_id: str, row: tuple[int, str, int, int, int, bytes]) -> Stored:
    row_id, ref, cut, verified, at_ns, body = row
    value = Value(
        graph_id=graph_id,
        ref=ref,
        content=encoding.content(body),
        tenant=tenant,
        cut=bool(cut),
        verified=bool(verified),
    )
    return Stored(row_id, at_ns, value)
