"""Flags and numbers of one batch into PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from memtrace_collector.graph import merge
from memtrace_collector.graph.facts import Flag
from memtrace_collector.graph.reader import SequenceNumber
from memtrace_collector.store import encoding
from memtrace_collector.store.postgres import keys, rows
from memtrace_collector.store.postgres.database import Connection

_ADD_FLAG = (
    "INSERT INTO flag(tenant, key, graph_key, target, at_ns, origin, changed, body)"
    " VALUES (%s, %s, %s, %s, %s, %s, 0, %s) ON CONFLICT DO NOTHING"
)
_FLAG = "SELECT body FROM flag WHERE tenant = %s AND key = %s FOR UPDATE"
_REPLACE_FLAG = (
    "UPDATE flag SET graph_key = %s, target = %s, at_ns = %s, body = %s"
    " WHERE tenant = %s AND key = %s"
)
_TABLE = "CREATE TEMP TABLE IF NOT EXISTS batch_number(LIKE sequence) ON COMMIT DELETE ROWS"
_COPY = "COPY batch_number FROM STDIN (FORMAT BINARY)"
_JOIN_NUMBERS = (
    "INSERT INTO sequence AS s SELECT * FROM batch_number ORDER BY tenant, process, number"
    " ON CONFLICT (tenant, process, number) DO UPDATE SET"
    " start_ns = least(s.start_ns, excluded.start_ns),"
    " end_ns = greatest(s.end_ns, excluded.end_ns), farewell = s.farewell OR excluded.farewell"
    " WHERE excluded.start_ns < s.start_ns OR excluded.end_ns > s.end_ns"
    " OR excluded.farewell > s.farewell"
)


def write_flags(
    connection: Connection, flags: Mapping[tuple[str, str], Flag]
) -> list[tuple[bytes, bytes]]:
    """Keep of each origin the flag that wins; tenant and key of those that are new or other."""
    changed = []
    for (tenant, origin), flag in sorted(flags.items()):
        key = (keys.name_bytes(tenant), keys.wide_key(origin))
        said = (keys.wide_key(flag.graph_id), keys.wide_key(flag.target), flag.at_ns)
        body = encoding.flag_body(flag)
        added = connection.execute(_ADD_FLAG, (*key, *said, keys.name_bytes(origin), body))
        if added.rowcount == 0:
            row = connection.execute(_FLAG, key, binary=True).fetchone()
            if row is None or not merge.flag_wins(flag, encoding.flag(row[0])):
                continue
            connection.execute(_REPLACE_FLAG, (*said, body, *key))
        changed.append(key)
    return changed


def write_numbers(
    connection: Connection, numbers: Mapping[tuple[str, str, int], SequenceNumber]
) -> None:
    if not numbers:
        return
    connection.execute(_TABLE)
    copied = [rows.number_row(tenant, number) for (tenant, _, _), number in numbers.items()]
    rows.copy(connection, _COPY, copied)
    connection.execute(_JOIN_NUMBERS)
