"""Values of one batch into SQLite, with their full-text index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msgspec import structs

from memtrace_collector.graph import content, merge
from memtrace_collector.graph.facts import Value
from memtrace_collector.graph.terms import terms
from memtrace_collector.store import encoding
from memtrace_collector.store.connections import json_list, take_numbers


@dataclass(frozen=True, slots=True)
class ValueWriter:
    """``graph_of`` gives the integer key of a graph by tenant and graph id."""

    connection: sqlite3.Connection
    graph_of: Callable[[str, str], int]

    def write(self, values: Iterable[Value]) -> None:
        """Keep of each reference the value that wins; what is found by search follows."""
        by_graph: dict[int, dict[str, Value]] = {}
        for value in values:
            graph = self.graph_of(value.tenant, value.graph_id)
            by_graph.setdefault(graph, {})[value.ref] = value
        winners: list[tuple[int, Value]] = []
        for graph, wanted in sorted(by_graph.items()):
            for ref, (row_id, known) in self._known(graph, wanted).items():
                if merge.value_wins(wanted[ref], known):
                    self._remove(graph, row_id, known)
                else:
                    del wanted[ref]
            winners.extend((graph, wanted[ref]) for ref in sorted(wanted))
        self._insert(winners)

    def _known(self, graph: int, wanted: dict[str, Value]) -> dict[str, tuple[int, Value]]:
        rows = self.connection.execute(
            "SELECT id, ref, cut, verified, content FROM value"
            " WHERE graph = ? AND ref IN (SELECT value FROM json_each(?))",
            (graph, json_list(wanted)),
        ).fetchall()
        return {
            ref: (
                row_id,
                structs.replace(
                    wanted[ref],
                    content=encoding.content(body),
                    cut=bool(cut),
                    verified=bool(verified),
                ),
            )
            for row_id, ref, cut, verified, body in rows
        }

    def _insert(self, values: list[tuple[int, Value]]) -> None:
        if not values:
            return
        first = take_numbers(self.connection, "value", len(values))
        self.connection.executemany(
            "INSERT INTO value(id, graph, ref, cut, verified, content) VALUES (?,?,?,?,?,?)",
            [
                (row_id, graph, v.ref, v.cut, v.verified, encoding.value_content(v))
                for row_id, (graph, v) in enumerate(values, first)
            ],
        )
        self.connection.executemany(
            "INSERT INTO value_text(rowid, scope, body) VALUES (?,?,?)",
            [
                (row_id, *_searchable(graph, value))
                for row_id, (graph, value) in enumerate(values, first)
            ],
        )

    def _remove(self, graph: int, row_id: int, value: Value) -> None:
        self.connection.execute(
            "INSERT INTO value_text(value_text, rowid, scope, body) VALUES('delete',?,?,?)",
            (row_id, *_searchable(graph, value)),
        )
        self.connection.execute("DELETE FROM value WHERE id = ?", (row_id,))


def _searchable(graph: int, value: Value) -> tuple[str, str]:
    kind = value.ref.partition(":")[0]
    # terms that confine a search to a graph and a kind, and those of the text
    return f"g{graph} k{kind}", " ".join(terms(content.plain_text(value)))
