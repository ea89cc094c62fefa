"""The queue of flagged answers in SQLite.

A taken case is due again when its lease runs out: nobody has to look for workers that died.
One writer at a time is what ``SKIP LOCKED`` is elsewhere: two takers never see the same case due.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from memtrace_collector.store.base import Change, OutboxEntry
from memtrace_collector.store.connections import Connections, json_list
from memtrace_collector.store.queue import (
    STATES,
    UNRESOLVED,
    WAITING,
    Lease,
    QueuedCase,
    Schedule,
    SetAside,
)
from memtrace_collector.store.verdicts import body_of, judgement_row, revision_of

# States are those of store/queue.py. touched: what happened to a case while it was leased, which
# counts when it is given back; 1: a graph of its changed, 2: it was flagged again.
_ANNOUNCE = (
    "INSERT INTO task(tenant, case_id, trace_id, span_id, graph_id, answered_ns, response_id,"
    " conversation_id, state, since_ns, due_ns) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?10)"
    " ON CONFLICT DO UPDATE SET touched = iif(leased_until_ns > ?10, 2, 0),"
    " due_ns = iif(leased_until_ns > ?10, due_ns, ?10),"
    " attempts = iif(state = 'set_aside', 0, attempts),"
    " state = iif(state = 'set_aside', excluded.state, state)"
)
_GRAPHS_CHANGED = (
    "UPDATE task SET touched = iif(leased_until_ns > ?3, max(touched, 1), 0),"
    " due_ns = iif(leased_until_ns > ?3, due_ns, max(not_before_ns, ?3))"
    " WHERE tenant = ?1 AND state <> 'set_aside' AND case_id IN (SELECT case_id FROM concern"
    " WHERE tenant = ?1 AND graph_id IN (SELECT value FROM json_each(?2)))"
    " AND (leased_until_ns > ?3 OR due_ns IS NULL OR due_ns > max(not_before_ns, ?3))"
)
_TAKE = (
    "UPDATE task SET worker = ?2, token = token + 1, attempts = attempts + 1, touched = 0,"
    " leased_until_ns = ?3, due_ns = ?3 WHERE tenant = ?1 AND case_id IN"
    " (SELECT case_id FROM task WHERE tenant = ?1 AND due_ns <= ?4 ORDER BY due_ns LIMIT ?5)"
    " RETURNING case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,"
    " token, since_ns, state = 'judged', attempts, step_ns"
)
_CLAIM = (
    "UPDATE task SET worker = ?2, token = token + 1, attempts = attempts + 1, touched = 0,"
    " leased_until_ns = ?3, due_ns = ?3, state = iif(state = 'set_aside', 'waiting', state)"
    " WHERE tenant = ?1 AND case_id = ?4 AND leased_until_ns <= ?5"
    " RETURNING case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,"
    " token, since_ns, state = 'judged', attempts, step_ns"
)
_RENEW = (
    "UPDATE task SET leased_until_ns = ?4, due_ns = ?4"
    " WHERE tenant = ?1 AND worker = ?2 AND leased_until_ns > ?3"
)
_RELEASE = (
    "UPDATE task SET worker = '', leased_until_ns = 0, attempts = 0, last_error = '', state = ?4,"
    " not_before_ns = ?5, step_ns = ?6, since_ns = ?9, touched = 0,"
    " due_ns = CASE touched WHEN 2 THEN ?8 WHEN 1 THEN max(?5, ?8) ELSE ?7 END"
    " WHERE tenant = ?1 AND case_id = ?2 AND token = ?3 AND worker <> ''"
)
_RESOLVED = "DELETE FROM task WHERE tenant = ? AND case_id = ? AND token = ? AND worker <> ''"
_FAIL = (
    "UPDATE task SET worker = '', leased_until_ns = 0, touched = 0, last_error = ?4, due_ns = ?5,"
    " state = iif(?5 IS NULL, 'set_aside', state)"
    " WHERE tenant = ?1 AND case_id = ?2 AND token = ?3 AND worker <> ''"
)
_QUEUED = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id"
    " FROM task WHERE tenant = ?1 AND (answered_ns, case_id) > (?2, ?3)"
    " AND graph_id <> '' AND (?4 = '' OR graph_id = ?4) ORDER BY answered_ns, case_id LIMIT ?5"
)
_UNRESOLVED = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id"
    " FROM task WHERE tenant = ? AND case_id > ? AND state = 'unresolved'"
    " ORDER BY case_id LIMIT ?"
)
_WAITING = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id"
    " FROM task WHERE tenant = ? AND state = 'waiting' ORDER BY answered_ns DESC, case_id LIMIT ?"
)
_SET_ASIDE = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,"
    " last_error, attempts FROM task WHERE tenant = ?1 AND state = 'set_aside'"
    " AND (?2 = '' OR graph_id = ?2) ORDER BY answered_ns, case_id LIMIT ?3"
)
_DUE = "SELECT 1 FROM task WHERE tenant = ? AND due_ns <= ? LIMIT 1"
_REVISION = "SELECT 1 FROM verdict WHERE tenant = ? AND case_id = ? AND revision = ?"
_FIELDS = len(QueuedCase._fields)


class SqliteCaseQueue:
    """Implements :class:`~memtrace_collector.store.base.CaseQueue` for one tenant."""

    def __init__(self, connections: Connections, tenant: str) -> None:
        self._connections = connections
        self.tenant = tenant

    def announce(
        self,
        cases: Iterable[QueuedCase],
        graph_ids: Iterable[str],
        until: Change | None,
        now_ns: int,
    ) -> None:
        with self._connections.transaction() as connection:
            announce(connection, self.tenant, cases, now_ns)
            parameters = (self.tenant, json_list(graph_ids), now_ns)
            connection.execute(_GRAPHS_CHANGED, parameters)
            if until is not None:
                connection.execute(
                    "INSERT OR REPLACE INTO read_until VALUES (?, ?, ?)", (self.tenant, *until)
                )

    def read_until(self) -> Change | None:
        row = self._connections.query(
            "SELECT epoch, number FROM read_until WHERE tenant = ?", (self.tenant,)
        ).fetchone()
        return Change(*row) if row else None

    def take(self, worker: str, now_ns: int, lease_ns: int, limit: int = 1) -> list[Lease]:
        if self._connections.query(_DUE, (self.tenant, now_ns)).fetchone() is None:
            return []  # most calls end here, without the lock of the writer
        with self._connections.transaction() as connection:
            parameters = (self.tenant, worker, now_ns + lease_ns, now_ns, limit)
            rows = connection.execute(_TAKE, parameters).fetchall()
        return [_lease(row) for row in rows]

    def claim(self, case_id: str, worker: str, now_ns: int, lease_ns: int) -> Lease | None:
        with self._connections.transaction() as connection:
            parameters = (self.tenant, worker, now_ns + lease_ns, case_id, now_ns)
            row = connection.execute(_CLAIM, parameters).fetchone()
        return _lease(row) if row else None

    def renew(self, worker: str, now_ns: int, lease_ns: int) -> int:
        with self._connections.transaction() as connection:
            parameters = (self.tenant, worker, now_ns, now_ns + lease_ns)
            return connection.execute(_RENEW, parameters).rowcount

    def release(
        self,
        lease: Lease,
        schedule: Schedule,
        now_ns: int,
        verdict: dict[str, object] | None = None,
        outbox: Iterable[OutboxEntry] = (),
    ) -> bool:
        case_id = lease.case.case_id
        with self._connections.transaction() as connection:
            if verdict is not None and is_stored(
                connection, self.tenant, case_id, revision_of(verdict)
            ):
                return False
            given_back = connection.execute(
                _RELEASE,
                (
                    *(self.tenant, case_id, lease.token, schedule.state, schedule.not_before_ns),
                    *(schedule.step_ns, schedule.due_ns, now_ns, schedule.since_ns),
                ),
            ).rowcount
            if given_back != 1:
                return False
            connection.execute(
                "DELETE FROM concern WHERE tenant = ? AND case_id = ?", (self.tenant, case_id)
            )
            connection.executemany(
                "INSERT INTO concern VALUES (?, ?, ?)",
                [(self.tenant, graph_id, case_id) for graph_id in set(schedule.graph_ids)],
            )
            if verdict is not None:
                put_verdict(connection, self.tenant, verdict, outbox)
        return True

    def resolve(self, lease: Lease, cases: Iterable[QueuedCase], now_ns: int) -> bool:
        with self._connections.transaction() as connection:
            parameters = (self.tenant, lease.case.case_id, lease.token)
            removed = connection.execute(_RESOLVED, parameters).rowcount
            if removed == 1:
                announce(connection, self.tenant, cases, now_ns)
        return removed == 1

    def fail(self, lease: Lease, error: str, retry_at_ns: int | None) -> bool:
        with self._connections.transaction() as connection:
            parameters = (self.tenant, lease.case.case_id, lease.token, error, retry_at_ns)
            return connection.execute(_FAIL, parameters).rowcount == 1

    def queued(
        self, graph_id: str = "", after: QueuedCase | None = None, limit: int = 500
    ) -> list[QueuedCase]:
        start = (after.answered_ns, after.case_id) if after else (-1, "")
        rows = self._connections.query(_QUEUED, (self.tenant, *start, graph_id, limit))
        return [QueuedCase(*row) for row in rows]

    def unresolved(self, after: QueuedCase | None = None, limit: int = 500) -> list[QueuedCase]:
        parameters = (self.tenant, after.case_id if after else "", limit)
        rows = self._connections.query(_UNRESOLVED, parameters)
        return [QueuedCase(*row) for row in rows]

    def waiting(self, limit: int = 500) -> list[QueuedCase]:
        rows = self._connections.query(_WAITING, (self.tenant, limit))
        return [QueuedCase(*row) for row in rows]

    def set_aside(self, graph_id: str = "", limit: int = 1_000) -> list[SetAside]:
        rows = self._connections.query(_SET_ASIDE, (self.tenant, graph_id, limit))
        return [SetAside(QueuedCase(*row[:_FIELDS]), *row[_FIELDS:]) for row in rows]

    def queue_counts(self) -> dict[str, int]:
        rows = self._connections.query(
            "SELECT state, count(*) FROM task WHERE tenant = ? GROUP BY state", (self.tenant,)
        )
        return dict.fromkeys(STATES, 0) | dict(rows.fetchall())


def put_verdict(
    connection: sqlite3.Connection,
    tenant: str,
    verdict: dict[str, object],
    outbox: Iterable[OutboxEntry],
) -> bool:
    """A verdict with its outbox rows; False, and no change, when its revision is there."""
    key = (tenant, verdict["id"], verdict["revision"], verdict["graph_id"], verdict["created"])
    written = connection.execute(
        "INSERT OR IGNORE INTO verdict VALUES (?,?,?,?,?,?)",
        (*key, body_of(verdict)),
    ).rowcount
    if written == 1:
        put_judgement(connection, tenant, verdict)
        put_outbox(connection, tenant, outbox)
    return written == 1


def put_judgement(
    connection: sqlite3.Connection, tenant: str, verdict: Mapping[str, object]
) -> None:
    """The row of what a person said, if it is a person's verdict; it takes an older one's place."""
    row = judgement_row(verdict)
    if row is not None:
        connection.execute(
            "INSERT OR REPLACE INTO judgement VALUES (?,?,?,?,?,?,?,?,?)",
            (tenant, verdict["id"], verdict["revision"], *row),
        )


def put_outbox(connection: sqlite3.Connection, tenant: str, outbox: Iterable[OutboxEntry]) -> None:
    """Rows that are there stay as they are."""
    connection.executemany(
        "INSERT INTO outbox(tenant, destination, id, case_id, revision, signal, payload,"
        " not_before_ns) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
        [
            (
                *(tenant, entry.destination, entry.id, entry.case_id, entry.revision),
                *(entry.signal, entry.payload, entry.not_before_ns),
            )
            for entry in outbox
        ],
    )


def announce(
    connection: sqlite3.Connection, tenant: str, cases: Iterable[QueuedCase], now_ns: int
) -> None:
    """Flagged answers into the queue; see :meth:`CaseQueue.announce`."""
    connection.executemany(
        _ANNOUNCE,
        [(tenant, *case, WAITING if case.is_resolved else UNRESOLVED, now_ns) for case in cases],
    )


def is_stored(connection: sqlite3.Connection, tenant: str, case_id: str, revision: int) -> bool:
    """Whether there is that revision of a verdict."""
    return connection.execute(_REVISION, (tenant, case_id, revision)).fetchone() is not None


def _lease(row: tuple[Any, ...]) -> Lease:
    token, since_ns, is_judged, attempts, step_ns = row[_FIELDS:]
    case = QueuedCase(*row[:_FIELDS])
    return Lease(case, token, since_ns, bool(is_judged), attempts, step_ns)
