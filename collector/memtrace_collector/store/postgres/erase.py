"""Taking facts out of PostgreSQL: a graph, a tenant, values that are too old."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from memtrace_collector.graph.facts import Operation
from memtrace_collector.store import encoding
from memtrace_collector.store.base import ErasedFacts
from memtrace_collector.store.encoding import Place
from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.database import Connection, Database

if TYPE_CHECKING:
    from typing_extensions import LiteralString

_PART = 2_000
_GRAPH = "SELECT name FROM graph WHERE id = %s AND tenant = %s FOR UPDATE"
_SOME = (
    "WITH gone AS (DELETE FROM operation WHERE graph = %(graph)s AND id IN"
    " (SELECT id FROM operation WHERE graph = %(graph)s ORDER BY id LIMIT %(limit)s) RETURNING *)"
    " SELECT trace, span, body FROM gone"
)
_SPANS = (
    "DELETE FROM span s USING unnest(%s::bytea[], %s::bytea[]) AS k(trace, span)"
    " WHERE s.tenant = %s AND s.trace = k.trace AND s.span = k.span"
)
_NAMED = "DELETE FROM named WHERE tenant = %s AND graph = %s AND name = ANY(%s)"
_FLAGS_ABOUT = "DELETE FROM flag WHERE tenant = %s AND graph_key = %s AND target = ANY(%s)"
_FLAGS_OF = "DELETE FROM flag WHERE tenant = %s AND graph_key = %s"
_BY_GRAPH: tuple[LiteralString, ...] = (
    "DELETE FROM used WHERE graph = %s",
    "DELETE FROM used_key WHERE graph = %s",
    "DELETE FROM produced WHERE graph = %s",
    "DELETE FROM unindexed WHERE graph = %s",
    "DELETE FROM value_text WHERE graph = %s",
    "DELETE FROM graph WHERE id = %s",
)
_BY_TENANT: tuple[LiteralString, ...] = (
    "DELETE FROM sequence WHERE tenant = %s",
    "DELETE FROM named WHERE tenant = %s",
    "DELETE FROM span WHERE tenant = %s",
)
_EXPIRE = (
    "WITH gone AS (DELETE FROM value WHERE at_ns < %s RETURNING graph, key),"
    " texts AS (DELETE FROM value_text USING gone"
    " WHERE value_text.graph = gone.graph AND value_text.key = gone.key),"
    " pending AS (DELETE FROM unindexed USING gone"
    " WHERE unindexed.graph = gone.graph AND unindexed.key = gone.key)"
    " SELECT count(*) FROM gone"
)
_NO_GRAPH = keys.wide_key("")


def erase_graph(database: Database, tenant: str, graph_id: str) -> ErasedFacts:
    """Everything of a graph, in one transaction; who applies to it meanwhile waits."""
    graph = keys.graph_key(tenant, graph_id)
    erased = database.transaction(functools.partial(_erase, tenant=tenant, graph=graph))
    _free(database)
    return erased


def erase_tenant(database: Database, tenant: str) -> ErasedFacts:
    """Graph by graph, each in one transaction, then what belongs to none."""
    name = keys.name_bytes(tenant)
    total = ErasedFacts(0, 0, 0)
    while found := database.query("SELECT id FROM graph WHERE tenant = %s LIMIT 100", (name,)):
        for (graph,) in found:
            part = database.transaction(functools.partial(_erase, tenant=tenant, graph=graph))
            total = ErasedFacts(*(one + other for one, other in zip(total, part)))
    for statement in _BY_TENANT:
        database.change(statement, (name,))
    flags = database.change("DELETE FROM flag WHERE tenant = %s", (name,))
    _free(database)
    return total._replace(flags=total.flags + flags)


def expire_values(database: Database, before_ns: int) -> int:
    """The values of every tenant that were last given before then."""
    ((count,),) = database.query(_EXPIRE, (before_ns,))
    return int(count)


def _free(database: Database) -> None:
    """Give the room of what was deleted to other rows: nothing can read it afterwards. Its bytes
    go when they are overwritten, or at once with ``VACUUM FULL``, which keeps everybody out."""
    with database.connection() as connection:
        connection.execute("VACUUM operation, used, used_key, produced, span, named, value")
        connection.execute("VACUUM unindexed, value_text, flag, sequence, graph")


def _erase(connection: Connection, tenant: str, graph: int) -> ErasedFacts:
    name = keys.name_bytes(tenant)
    row = connection.execute(_GRAPH, (graph, name), binary=True).fetchone()
    if row is None:
        return ErasedFacts(0, 0, 0)
    graph_id = row[0].decode()
    operations = flags = 0
    while found := _some(connection, Place(tenant, graph_id, "", ""), graph):
        operations += len(found)
        flags += _erase_names(connection, name, graph, found)
    flags += connection.execute(_FLAGS_OF, (name, keys.wide_key(graph_id))).rowcount
    values = connection.execute("DELETE FROM value WHERE graph = %s", (graph,)).rowcount
    for statement in _BY_GRAPH:
        connection.execute(statement, (graph,))
    return ErasedFacts(operations, values, flags)


def _some(connection: Connection, place: Place, graph: int) -> list[Operation]:
    """Take some operations out of the graph."""
    rows = connection.execute(_SOME, {"graph": graph, "limit": _PART}, binary=True)
    return [
        encoding.operation(body, place._replace(trace_id=trace.hex(), span_id=span.hex()))
        for trace, span, body in rows
    ]


def _erase_names(
    connection: Connection, tenant: bytes, graph: int, operations: list[Operation]
) -> int:
    """What leads to these operations; the number of flags among it."""
    traces = [bytes.fromhex(operation.trace_id) for operation in operations]
    spans = [bytes.fromhex(operation.span_id) for operation in operations]
    targets = {target for operation in operations for target in operation.flag_targets}
    connection.execute(_SPANS, (traces, spans, tenant))
    about = [keys.wide_key(target) for target in targets]
    connection.execute(_NAMED, (tenant, graph, about))
    return connection.execute(_FLAGS_ABOUT, (tenant, _NO_GRAPH, about)).rowcount
