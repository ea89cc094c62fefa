"""Orders to erase (see :mod:`memtrace_collector.store.erasures`) in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memtrace_collector.store.erasures import FOLLOWING, Erasure
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
    "UPDATE erasure e SET graph_id = '', targets = '[]'"
    " WHERE (id = %(id)s OR starts_with(id, %(following)s)) AND NOT EXISTS"
    " (SELECT FROM erasure_log l WHERE l.erasure = e.id AND NOT l.is_done)"
)
_LEAVE_OUT = (
    "UPDATE erasure_log SET is_done = true FROM log WHERE log.id = erasure_log.log"
    " AND (erasure = %(id)s OR starts_with(erasure, %(following)s)) AND log.name = %(log)s"
)
_WAITING = (
    "SELECT DISTINCT log.name FROM erasure_log l JOIN log ON log.id = l.log"
    " WHERE (l.erasure = %(id)s OR starts_with(l.erasure, %(following)s)) AND NOT l.is_done"
    " ORDER BY log.name"
)
_REPORTS = (
    "SELECT log.name, l.report FROM erasure_log l JOIN log ON log.id = l.log"
    " WHERE (l.erasure = %(id)s OR starts_with(l.erasure, %(following)s)) AND l.is_done"
    " ORDER BY log.name, l.erasure"
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


def confirm(database: Database, order_id: str, log_id: str, report: Mapping[str, object]) -> None:
    """The order is carried out in this log."""
    said = json.dumps(dict(report))

    def write(connection: Connection) -> None:
        connection.execute(_CONFIRM, (said, order_id, log_id))
        connection.execute(_FORGET, _all_of(order_id))

    database.transaction(write)


def leave_out(database: Database, order_id: str, log_id: str) -> None:
    """The order, and what follows it, waits no more for this log."""

    def write(connection: Connection) -> None:
        connection.execute(_LEAVE_OUT, _all_of(order_id) | {"log": log_id})
        connection.execute(_FORGET, _all_of(order_id))

    database.transaction(write)


def waiting_for(database: Database, order_id: str) -> list[str]:
    """The ids of the logs whose owners have not confirmed the order."""
    return [row[0] for row in database.query(_WAITING, _all_of(order_id))]


def reports(database: Database, order_id: str) -> list[tuple[str, dict[str, Any]]]:
    """What the owners found that have confirmed the order, with the ids of their logs."""
    rows = database.query(_REPORTS, _all_of(order_id))
    return [(name, json.loads(said)) for name, said in rows]


def _all_of(order_id: str) -> dict[str, str]:
    """The order and those that follow it."""
    return {"id": order_id, "following": order_id + FOLLOWING}
