"""Taking a graph or a tenant out of the fact store's file, slice by slice."""

from __future__ import annotations

from memtrace_collector.log.position import START
from memtrace_collector.store import encoding, facts_rows, keys
from memtrace_collector.store.connections import Connections, json_list
from memtrace_collector.store.encoding import Place
from memtrace_collector.store.facts_rows import Stored

_SLICE = 1_000
"""Operations that one transaction removes: others are not kept waiting for long."""


def erase_graph(connections: Connections, tenant: str, graph_id: str) -> tuple[int, int]:
    """Remove a graph; how many operations and flags there were."""
    graph = connections.query(
        "SELECT id FROM graph WHERE tenant = ? AND graph_id = ?", (tenant, graph_id)
    ).fetchone()
    operations = flags = 0
    while graph is not None and (slice_ := _erase_slice(connections, graph[0], tenant, graph_id)):
        operations += slice_[0]
        flags += slice_[1]
    with connections.transaction() as connection:
        flags += connection.execute(
            "DELETE FROM flag WHERE tenant = ? AND graph_id = ?", (tenant, graph_id)
        ).rowcount
        connection.execute(
            "DELETE FROM graph WHERE tenant = ? AND graph_id = ?", (tenant, graph_id)
        )
    return operations, flags


def erase_tenant(connections: Connections, tenant: str) -> tuple[int, int]:
    """As :func:`erase_graph`, of everything that the tenant has."""
    graphs = connections.query("SELECT graph_id FROM graph WHERE tenant = ?", (tenant,)).fetchall()
    operations = flags = 0
    for (graph_id,) in graphs:
        erased = erase_graph(connections, tenant, graph_id)
        operations += erased[0]
        flags += erased[1]
    with connections.transaction() as connection:
        flags += connection.execute("DELETE FROM flag WHERE tenant = ?", (tenant,)).rowcount
        connection.execute("DELETE FROM sequence WHERE tenant = ?", (tenant,))
    return operations, flags


def _erase_slice(
    connections: Connections, graph: int, tenant: str, graph_id: str
) -> tuple[int, int] | None:
    with connections.transaction() as connection:
        rows = connection.execute(
            "SELECT id, trace, span, body FROM operation WHERE id BETWEEN ? AND ? LIMIT ?",
            (*keys.row_ids(graph), _SLICE),
        ).fetchall()
        if not rows:
            return None
        items = [
            encoding.operation(body, Place(tenant, graph_id, trace.hex(), span.hex()))
            for _, trace, span, body in rows
        ]
        facts_rows.remove(
            connection,
            [
                Stored(graph, keys.number_of(row[0]), facts_rows.span_key(item), item, START)
                for row, item in zip(rows, items)
            ],
        )
        flags = connection.execute(
            "DELETE FROM flag WHERE tenant = ? AND graph_id = ''"
            " AND target IN (SELECT value FROM json_each(?))",
            (tenant, json_list({target for item in items for target in item.flag_targets})),
        ).rowcount
        connection.execute(
            "UPDATE graph SET operations = max(0, operations - ?), removals = removals + 1"
            " WHERE id = ?",
            (len(rows), graph),
        )
    return len(rows), flags
