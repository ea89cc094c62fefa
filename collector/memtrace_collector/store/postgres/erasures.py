"""Orders to erase (see :mod:`memtrace_collector.store.erasures`) in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memtrace_collector.store.erasures import Erasure
from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.database import Connection, Database

_GIVE = (
    "INSERT INTO erasure(id, tenant, is_whole, graph_id, given_ns, targets)"
    " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
_CONCERNED = (
    "INSERT INTO erasure_log(erasure, log) SELECT %s, id FROM log WHERE name <> ''"
    " ON CONFLICT DO NOTHING"
)
_OPEN = (
    "SELECT e.id, e.tenant, CASE WHEN NOT e.is_whole THEN e.graph_id END, e.given_ns, e.targets"
    " FROM erasure e JOIN erasure_log l ON l.erasure = e.id JOIN log ON log.id = l.log"
    " WHERE log.name = %s AND NOT l.is_done ORDER BY e.given_ns, e.id"
)
_CONFIRM = (
    "UPDATE erasure_log SET is_done = true, report = %s FROM log"
    " WHERE log.id = erasure_log.log AND erasure = %s AND log.name = %s"
)
_FORGET = (
    "UPDATE erasure e SET graph_id = '', targets = '[]' WHERE id = %s AND NOT EXISTS"
    " (SELECT FROM erasure_log l WHERE l.erasure = e.id AND NOT l.is_done)"
)
_WAITING = (
    "SELECT log.name FROM erasure_log l JOIN log ON log.id = l.log"
    " WHERE l.erasure = %s AND NOT l.is_done ORDER BY log.name"
)
_REPORTS = (
    "SELECT log.name, l.report FROM erasure_log l JOIN log ON log.id = l.log"
    " WHERE l.erasure = %s AND l.is_done ORDER BY log.name"
)


def give(database: Database, erasure: Erasure) -> None:
    """Order every known log to be rewritten; giving an order again changes nothing."""
    name = keys.name_bytes(erasure.graph_id or "")
    is_whole = erasure.graph_id is None
    targets = json.dumps(erasure.targets)
    about = (keys.name_bytes(erasure.tenant), is_whole, name, erasure.given_ns, targets)

    def write(connection: Connection) -> None:
        if connection.execute(_GIVE, (erasure.order_id, *about)).rowcount:
            connection.execute(_CONCERNED, (erasure.order_id,))

    database.transaction(write)


def open_for(database: Database, log_id: str) -> list[Erasure]:
    """The orders that the owner of this log has not confirmed, the oldest first."""
    rows = database.query(_OPEN, (log_id,))
    return [
        Erasure(
            order_id,
            tenant.decode(),
            None if name is None else name.decode(),
            given_ns,
            tuple(json.loads(targets)),
        )
        for order_id, tenant, name, given_ns, targets in rows
    ]


def confirm(
    database: Database, order_id: str, log_id: str, report: Mapping[str, object] | None
) -> None:
    """The order is carried out in this log."""
    said = json.dumps(dict(report or {}))

    def write(connection: Connection) -> None:
        connection.execute(_CONFIRM, (said, order_id, log_id))
        connection.execute(_FORGET, (order_id,))

    database.transaction(write)


def waiting_for(database: Database, order_id: str) -> list[str]:
    """The ids of the logs whose owners have not confirmed the order."""
    return [row[0] for row in database.query(_WAITING, (order_id,))]


def reports(database: Database, order_id: str) -> dict[str, dict[str, Any]]:
    """What the owners found that have confirmed the order, by the id of the log."""
    return {name: json.loads(said) for name, said in database.query(_REPORTS, (order_id,))}
