"""Rows of graphs: whose a key is, and how much each holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from memtrace_collector.graph.facts import Operation
from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.database import Connection

_HOLD = "SELECT id, tenant, name FROM graph WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"
_MAKE = (
    "INSERT INTO graph(id, tenant, name) SELECT * FROM"
    " unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS g(id, tenant, name) ORDER BY id"
    " ON CONFLICT DO NOTHING"
)
_LOCK = "SELECT FROM graph WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
_NUMBER = "UPDATE counter SET value = value + 1 WHERE name = 'change' RETURNING value"
_ADD = (
    "UPDATE graph g SET operations = g.operations + a.operations,"
    " first_ns = least(g.first_ns, a.first_ns), last_ns = greatest(g.last_ns, a.last_ns),"
    " changed = %s FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])"
    " AS a(id, operations, first_ns, last_ns) WHERE g.id = a.id"
)
_RECOUNT = (
    "UPDATE graph g SET changed = %s, (operations, first_ns, last_ns) ="
    " (SELECT count(*), min(start_ns), max(end_ns) FROM operation o WHERE o.graph = g.id)"
    " WHERE g.id = ANY(%s)"
)


def hold(connection: Connection, names: Collection[tuple[str, str]]) -> None:
    """Make the graphs (tenant, name) that are not there, and keep all from being erased until
    the transaction ends.

    Raises:
        ValueError: two graphs have one key.
    """
    wanted = {keys.graph_key(*name): name for name in names}
    if not wanted:
        return
    found = _held(connection, list(wanted))
    missing = sorted(key for key in wanted if key not in found)
    if missing:
        tenants = [keys.name_bytes(wanted[key][0]) for key in missing]
        graph_ids = [keys.name_bytes(wanted[key][1]) for key in missing]
        connection.execute(_MAKE, (missing, tenants, graph_ids))
        found |= _held(connection, missing)
    for key, name in wanted.items():
        if found[key] != name:
            raise ValueError(f"two graphs have one key: {found[key]} and {name}")


def _held(connection: Connection, wanted: list[int]) -> dict[int, tuple[str, str]]:
    rows = connection.execute(_HOLD, (wanted,), binary=True)
    return {key: (tenant.decode(), name.decode()) for key, tenant, name in rows}


def names(connection: Connection, wanted: Iterable[int]) -> dict[int, str]:
    """The names of graphs by key."""
    rows = connection.execute(
        "SELECT id, name FROM graph WHERE id = ANY(%s)", (list(wanted),), binary=True
    )
    return {key: name.decode() for key, name in rows}


def count(
    connection: Connection,
    added: Iterable[tuple[int, Operation]],
    thinned: Collection[int],
    flags: Sequence[tuple[bytes, bytes]],
) -> None:
    """Add operations to the totals of their graphs, count those anew that lost one, and give
    these graphs and these flags (tenant, key) the next number in the order of changes."""
    grown: dict[int, list[Operation]] = {}
    for graph, operation in added:
        grown.setdefault(graph, []).append(operation)
    changed = sorted(grown.keys() | thinned)
    if not changed and not flags:
        return
    if changed:
        connection.execute(_LOCK, (changed,))
    ((number,),) = connection.execute(_NUMBER).fetchall()
    added_to = sorted(graph for graph in grown if graph not in thinned)
    if added_to:
        counts = [len(grown[graph]) for graph in added_to]
        firsts = [min(each.start_ns for each in grown[graph]) for graph in added_to]
        lasts = [max(each.end_ns for each in grown[graph]) for graph in added_to]
        connection.execute(_ADD, (number, added_to, counts, firsts, lasts))
    if thinned:
        connection.execute(_RECOUNT, (number, sorted(thinned)))
    for tenant, key in flags:
        connection.execute(
            "UPDATE flag SET changed = %s WHERE tenant = %s AND key = %s", (number, tenant, key)
        )
