"""Rows of graphs: whose a key is, and how much each holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from memtrace_collector.graph.facts import Operation
from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.database import Connection

_HOLD = "SELECT id, tenant, name FROM graph WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"
_MAKE = (
    "INSERT INTO graph(id, tenant, name) SELECT * FROM"
    " unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS g(id, tenant, name) ORDER BY id"
    " ON CONFLICT DO NOTHING"
)
_LOCK = "SELECT id, first_ns, last_ns FROM graph WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
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

_NEVER = 1 << 63


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


class _Change(NamedTuple):
    """What a batch changes in one graph."""

    added: list[Operation]
    removed: list[Operation]

    @property
    def grows_by(self) -> int:
        return len(self.added) - len(self.removed)

    def may_shrink(self, first_ns: int | None, last_ns: int | None) -> bool:
        """Did the graph begin or end with something removed that nothing added replaces?"""
        if not self.removed or first_ns is None or last_ns is None:
            return False
        starts = [operation.start_ns for operation in self.added]
        ends = [operation.end_ns for operation in self.added]
        return min(each.start_ns for each in self.removed) <= first_ns < min(
            starts, default=_NEVER
        ) or max(each.end_ns for each in self.removed) >= last_ns > max(ends, default=-1)


def count(
    connection: Connection,
    added: Iterable[tuple[int, Operation]],
    removed: Iterable[tuple[int, Operation]],
    flags: Sequence[tuple[bytes, bytes]],
) -> None:
    """Bring the totals of graphs up to date, and give these graphs and these flags (tenant, key)
    the next number in the order of changes."""
    changes: dict[int, _Change] = defaultdict(lambda: _Change([], []))
    for graph, operation in added:
        changes[graph].added.append(operation)
    for graph, operation in removed:
        changes[graph].removed.append(operation)
    if not changes and not flags:
        return
    ends = connection.execute(_LOCK, (list(changes),)).fetchall() if changes else []
    ((number,),) = connection.execute(_NUMBER).fetchall()
    recounted = [graph for graph, *known in ends if changes[graph].may_shrink(*known)]
    _add(connection, number, {g: each for g, each in changes.items() if g not in recounted})
    if recounted:
        connection.execute(_RECOUNT, (number, recounted))
    for tenant, key in flags:
        connection.execute(
            "UPDATE flag SET changed = %s WHERE tenant = %s AND key = %s", (number, tenant, key)
        )


def _add(connection: Connection, number: int, changes: Mapping[int, _Change]) -> None:
    grown = list(changes)
    by = [changes[graph].grows_by for graph in grown]
    firsts = [min((o.start_ns for o in changes[graph].added), default=None) for graph in grown]
    lasts = [max((o.end_ns for o in changes[graph].added), default=None) for graph in grown]
    connection.execute(_ADD, (number, grown, by, firsts, lasts))
