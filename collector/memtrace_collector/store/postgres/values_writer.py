"""Values of one batch into PostgreSQL. What is searched is made later."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from memtrace_collector.graph import merge
from memtrace_collector.graph.facts import Value
from memtrace_collector.store import encoding
from memtrace_collector.store.postgres import keys, rows
from memtrace_collector.store.postgres.database import Connection

_TABLE = "CREATE TEMP TABLE IF NOT EXISTS batch_value(LIKE value) ON COMMIT DELETE ROWS"
_COPY = "COPY batch_value FROM STDIN (FORMAT BINARY)"
_INSERT = "INSERT INTO value SELECT * FROM batch_value ORDER BY graph, key ON CONFLICT DO NOTHING"
_KNOWN = (
    "SELECT v.graph, v.key, v.cut, v.verified, v.content FROM batch_value b"
    " JOIN value v USING (graph, key) WHERE v.number <> b.number"
    " AND (v.cut, v.verified, v.content) <> (b.cut, b.verified, b.content)"
    " ORDER BY v.graph, v.key FOR UPDATE OF v"
)
_REPLACE = (
    "UPDATE value SET number = %s, cut = %s, verified = %s, content = %s"
    " WHERE graph = %s AND key = %s"
)
_GIVEN_AGAIN = (
    "UPDATE value v SET at_ns = b.at_ns FROM batch_value b"
    " WHERE v.graph = b.graph AND v.key = b.key AND v.at_ns < b.at_ns"
)
_SEARCHED_LATER = (
    "INSERT INTO unindexed SELECT graph, key FROM batch_value b JOIN value v"
    " USING (graph, key, number) ORDER BY graph, key ON CONFLICT DO NOTHING"
)
_Key = tuple[str, str, str]
"""Tenant, graph, reference."""


def write_values(
    connection: Connection, values: Mapping[_Key, Value], times: Mapping[_Key, int], first: int
) -> None:
    """Keep of each reference the value that wins, and when it was last given; ``first``: of
    numbers that no other batch has."""
    if not values:
        return
    wanted = {
        (keys.graph_key(tenant, graph_id), keys.wide_key(ref)): (number, value)
        for number, ((tenant, graph_id, ref), value) in enumerate(values.items(), first)
    }
    connection.execute(_TABLE)
    copied = [
        rows.value_row(graph, number, value, times[value.tenant, value.graph_id, value.ref])
        for (graph, _), (number, value) in wanted.items()
    ]
    rows.copy(connection, _COPY, copied)
    if connection.execute(_INSERT).rowcount < len(wanted):
        for graph, key, cut, verified, body in connection.execute(_KNOWN, binary=True).fetchall():
            number, value = wanted[graph, key]
            known = structs.replace(
                value, content=encoding.content(body), cut=cut, verified=verified
            )
            if merge.value_wins(value, known):
                content = encoding.value_content(value)
                state = (number, value.cut, value.verified, content)
                connection.execute(_REPLACE, (*state, graph, key))
        connection.execute(_GIVEN_AGAIN)
    connection.execute(_SEARCHED_LATER)
