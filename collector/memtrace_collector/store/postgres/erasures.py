"""Orders to erase, where several processors share the facts: each owner of a log rewrites its own.

An order names the logs that were known when it was given. Who owns one of them carries the order
out in its log, then confirms; once all have, the order no longer says what it was about. What
comes in while one is open may go with it.
"""

from __future__ import annotations

from typing import NamedTuple

from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.database import Connection, Database

_GIVE = (
    "INSERT INTO erasure(id, tenant, is_whole, graph_id, given_ns) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT DO NOTHING"
)
_CONCERNED = (
    "INSERT INTO erasure_log(erasure, log) SELECT %s, id FROM log WHERE name <> ''"
    " ON CONFLICT DO NOTHING"
)
_OPEN = (
    "SELECT e.id, e.tenant, CASE WHEN NOT e.is_whole THEN e.graph_id END, e.given_ns"
    " FROM erasure e JOIN erasure_log l ON l.erasure = e.id JOIN log ON log.id = l.log"
    " WHERE log.name = %s AND NOT l.is_done ORDER BY e.given_ns, e.id"
)
_CONFIRM = (
    "UPDATE erasure_log SET is_done = true FROM log"
    " WHERE log.id = erasure_log.log AND erasure = %s AND log.name = %s"
)
_FORGET = (
    "UPDATE erasure e SET graph_id = '' WHERE id = %s AND NOT EXISTS"
    " (SELECT FROM erasure_log l WHERE l.erasure = e.id AND NOT l.is_done)"
)
_WAITING = (
    "SELECT log.name FROM erasure_log l JOIN log ON log.id = l.log"
    " WHERE l.erasure = %s AND NOT l.is_done ORDER BY log.name"
)


class Erasure(NamedTuple):
    """An order that is not carried out in every log yet."""

    order_id: str
    tenant: str
    graph_id: str | None
    """None: everything of the tenant."""
    given_ns: int


def give(database: Database, erasure: Erasure) -> None:
    """Order every known log to be rewritten; giving an order again changes nothing."""
    name = keys.name_bytes(erasure.graph_id or "")
    is_whole = erasure.graph_id is None
    about = (keys.name_bytes(erasure.tenant), is_whole, name, erasure.given_ns)

    def write(connection: Connection) -> None:
        if connection.execute(_GIVE, (erasure.order_id, *about)).rowcount:
            connection.execute(_CONCERNED, (erasure.order_id,))

    database.transaction(write)


def open_for(database: Database, log_id: str) -> list[Erasure]:
    """The orders that the owner of this log has not confirmed, the oldest first."""
    return [
        Erasure(order_id, tenant.decode(), None if name is None else name.decode(), given_ns)
        for order_id, tenant, name, given_ns in database.query(_OPEN, (log_id,))
    ]


def confirm(database: Database, order_id: str, log_id: str) -> None:
    """The order is carried out in this log."""

    def write(connection: Connection) -> None:
        connection.execute(_CONFIRM, (order_id, log_id))
        connection.execute(_FORGET, (order_id,))

    database.transaction(write)


def waiting_for(database: Database, order_id: str) -> list[str]:
    """The ids of the logs whose owners have not confirmed the order."""
    return [row[0] for row in database.query(_WAITING, (order_id,))]
