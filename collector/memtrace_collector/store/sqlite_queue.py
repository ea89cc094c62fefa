"""The queue of flagged answers in SQLite.

A taken case is due again when its lease runs out: nobody has to look for workers that died.
One writer at a time is what ``SKIP LOCKED`` is elsewhere: two takers never see the same case due.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
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

# States are those of store/queue.py. touched: what happened to a case while it was leased, which
# counts when it is given back; 1: a graph of its changed, 2: it was flagged again.
_ANNOUNCE = (
    "INSERT INTO task(case_id, trace_id, span_id, graph_id, answered_ns, response_id,"
    " conversation_id, state, since_ns, due_ns) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?9)"
    " ON CONFLICT DO UPDATE SET touched = iif(leased_until_ns > ?9, 2, 0),"
    " due_ns = iif(leased_until_ns > ?9, due_ns, ?9),"
    " attempts = iif(state = 'set_aside', 0, attempts),"
    " state = iif(state = 'set_aside', excluded.state, state)"
)
_GRAPHS_CHANGED = (
    "UPDATE task SET touched = iif(leased_until_ns > ?2, max(touched, 1), 0),"
    " due_ns = iif(leased_until_ns > ?2, due_ns, max(not_before_ns, ?2))"
    " WHERE state <> 'set_aside' AND case_id IN (SELECT case_id FROM concern"
    " WHERE graph_id IN (SELECT value FROM json_each(?1))) AND (leased_until_ns > ?2"
    " OR due_ns IS NULL OR due_ns > max(not_before_ns, ?2))"
)
_TAKE = (
    "UPDATE task SET worker = ?1, token = token + 1, attempts = attempts + 1, touched = 0,"
    " leased_until_ns = ?2, due_ns = ?2 WHERE case_id IN"
    " (SELECT case_id FROM task WHERE due_ns <= ?3 ORDER BY due_ns LIMIT ?4)"
    " RETURNING case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,"
    " token, since_ns, state = 'judged', attempts, step_ns"
)
_CLAIM = (
    "UPDATE task SET worker = ?1, token = token + 1, attempts = attempts + 1, touched = 0,"
    " leased_until_ns = ?2, due_ns = ?2, state = iif(state = 'set_aside', 'waiting', state)"
    " WHERE case_id = ?3 AND leased_until_ns <= ?4"
    " RETURNING case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,"
    " token, since_ns, state = 'judged', attempts, step_ns"
)
_RELEASE = (
    "UPDATE task SET worker = '', leased_until_ns = 0, attempts = 0, last_error = '', state = ?3,"
    " not_before_ns = ?4, step_ns = ?5, since_ns = ?8, touched = 0,"
    " due_ns = CASE touched WHEN 2 THEN ?7 WHEN 1 THEN max(?4, ?7) ELSE ?6 END"
    " WHERE case_id = ?1 AND token = ?2 AND worker <> ''"
)
_FAIL = (
    "UPDATE task SET worker = '', leased_until_ns = 0, touched = 0, last_error = ?3, due_ns = ?4,"
    " state = iif(?4 IS NULL, 'set_aside', state)"
    " WHERE case_id = ?1 AND token = ?2 AND worker <> ''"
)
_QUEUED = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id"
    " FROM task WHERE (answered_ns, case_id) > (?1, ?2)"
    " AND graph_id <> '' AND (?3 = '' OR graph_id = ?3) ORDER BY answered_ns, case_id LIMIT ?4"
)
_UNRESOLVED = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id"
    " FROM task WHERE case_id > ? AND state = 'unresolved' ORDER BY case_id LIMIT ?"
)
_SET_ASIDE = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,"
    " last_error, attempts FROM task WHERE state = 'set_aside' AND (?1 = '' OR graph_id = ?1)"
    " ORDER BY answered_ns, case_id LIMIT ?2"
)
_FIELDS = len(QueuedCase._fields)


class SqliteCaseQueue:
    """Implements :class:`~memtrace_collector.store.queue.CaseQueue`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def announce(
        self,
        cases: Iterable[QueuedCase],
        graph_ids: Iterable[str],
        until: Change | None,
        now_ns: int,
    ) -> None:
        with self._connections.transaction() as connection:
            _announce(connection, cases, now_ns)
            connection.execute(_GRAPHS_CHANGED, (json_list(graph_ids), now_ns))
            if until is not None:
                connection.execute("INSERT OR REPLACE INTO read_until VALUES (0, ?, ?)", until)

    def read_until(self) -> Change | None:
        row = self._connections.query("SELECT epoch, number FROM read_until").fetchone()
        return Change(*row) if row else None

    def take(self, worker: str, now_ns: int, lease_ns: int, limit: int = 1) -> list[Lease]:
        if (
            self._connections.query(
                "SELECT 1 FROM task WHERE due_ns <= ? LIMIT 1", (now_ns,)
            ).fetchone()
            is None
        ):
            return []  # most calls end here, without the lock of the writer
        with self._connections.transaction() as connection:
            rows = connection.execute(_TAKE, (worker, now_ns + lease_ns, now_ns, limit)).fetchall()
        return [_lease(row) for row in rows]

    def claim(self, case_id: str, worker: str, now_ns: int, lease_ns: int) -> Lease | None:
        with self._connections.transaction() as connection:
            parameters = (worker, now_ns + lease_ns, case_id, now_ns)
            row = connection.execute(_CLAIM, parameters).fetchone()
        return _lease(row) if row else None

    def renew(self, worker: str, now_ns: int, lease_ns: int) -> int:
        with self._connections.transaction() as connection:
            return connection.execute(
                "UPDATE task SET leased_until_ns = ?3, due_ns = ?3"
                " WHERE worker = ?1 AND leased_until_ns > ?2",
                (worker, now_ns, now_ns + lease_ns),
            ).rowcount

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
            given_back = connection.execute(
                _RELEASE,
                (
                    *(case_id, lease.token, schedule.state, schedule.not_before_ns),
                    *(schedule.step_ns, schedule.due_ns, now_ns, schedule.since_ns),
                ),
            ).rowcount
            if given_back != 1:
                return False
            connection.execute("DELETE FROM concern WHERE case_id = ?", (case_id,))
            connection.executemany(
                "INSERT INTO concern VALUES (?, ?)",
                [(graph_id, case_id) for graph_id in set(schedule.graph_ids)],
            )
            if verdict is not None:
                put_verdict(connection, verdict, outbox)
        return True

    def resolve(self, lease: Lease, cases: Iterable[QueuedCase], now_ns: int) -> bool:
        with self._connections.transaction() as connection:
            removed = connection.execute(
                "DELETE FROM task WHERE case_id = ? AND token = ? AND worker <> ''",
                (lease.case.case_id, lease.token),
            ).rowcount
            if removed == 1:
                _announce(connection, cases, now_ns)
        return removed == 1

    def fail(self, lease: Lease, error: str, retry_at_ns: int | None) -> bool:
        with self._connections.transaction() as connection:
            parameters = (lease.case.case_id, lease.token, error, retry_at_ns)
            return connection.execute(_FAIL, parameters).rowcount == 1

    def queued(
        self, graph_id: str = "", after: QueuedCase | None = None, limit: int = 500
    ) -> list[QueuedCase]:
        start = (after.answered_ns, after.case_id) if after else (-1, "")
        rows = self._connections.query(_QUEUED, (*start, graph_id, limit))
        return [QueuedCase(*row) for row in rows]

    def unresolved(self, after: QueuedCase | None = None, limit: int = 500) -> list[QueuedCase]:
        rows = self._connections.query(_UNRESOLVED, (after.case_id if after else "", limit))
        return [QueuedCase(*row) for row in rows]

    def set_aside(self, graph_id: str = "", limit: int = 1_000) -> list[SetAside]:
        rows = self._connections.query(_SET_ASIDE, (graph_id, limit))
        return [SetAside(QueuedCase(*row[:_FIELDS]), *row[_FIELDS:]) for row in rows]

    def queue_counts(self) -> dict[str, int]:
        rows = self._connections.query("SELECT state, count(*) FROM task GROUP BY state")
        return dict.fromkeys(STATES, 0) | dict(rows.fetchall())


def put_verdict(
    connection: sqlite3.Connection, verdict: dict[str, object], outbox: Iterable[OutboxEntry]
) -> bool:
    """A verdict with its outbox rows; False, and no change, when its revision is there."""
    key = (verdict["id"], verdict["revision"], verdict["graph_id"], verdict["created"])
    written = connection.execute(
        "INSERT OR IGNORE INTO verdict VALUES (?,?,?,?,?)",
        (*key, json.dumps(verdict, ensure_ascii=False)),
    ).rowcount
    if written == 1:
        put_outbox(connection, outbox)
    return written == 1


def put_outbox(connection: sqlite3.Connection, outbox: Iterable[OutboxEntry]) -> None:
    """Rows that are there stay as they are."""
    connection.executemany(
        "INSERT OR IGNORE INTO outbox(id, case_id, revision, signal, payload, not_before_ns)"
        " VALUES (?,?,?,?,?,?)",
        [(e.id, e.case_id, e.revision, e.signal, e.payload, e.not_before_ns) for e in outbox],
    )


def _announce(connection: sqlite3.Connection, cases: Iterable[QueuedCase], now_ns: int) -> None:
    connection.executemany(
        _ANNOUNCE,
        [(*case, WAITING if case.is_resolved else UNRESOLVED, now_ns) for case in cases],
    )


def _lease(row: tuple[Any, ...]) -> Lease:
    token, since_ns, is_judged, attempts, step_ns = row[_FIELDS:]
    case = QueuedCase(*row[:_FIELDS])
    return Lease(case, token, since_ns, bool(is_judged), attempts, step_ns)
