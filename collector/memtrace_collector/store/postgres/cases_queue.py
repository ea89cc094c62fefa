"""The queue of flagged answers in PostgreSQL, for workers of any number of processes.

A taken case is due again when its lease runs out: nobody has to look for workers that died.
Takers skip what another is about to take, so that none waits. Whoever changes several cases
takes their locks in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.store.base import Change, OutboxEntry
from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.cases_rows import put_verdict
from memtrace_collector.store.postgres.database import Connection, Database
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
_ANNOUNCE = """
INSERT INTO task AS t(tenant, case_id, trace_id, span_id, graph_id, answered_ns, response_id,
  conversation_id, state, since_ns, due_ns)
VALUES (%(tenant)s, %(case_id)s, %(trace_id)s, %(span_id)s, %(graph_id)s, %(answered_ns)s,
  %(response_id)s, %(conversation_id)s, %(state)s, %(now)s, %(now)s)
ON CONFLICT (tenant, case_id) DO UPDATE SET
  touched = CASE WHEN t.leased_until_ns > %(now)s THEN 2 ELSE 0 END,
  due_ns = CASE WHEN t.leased_until_ns > %(now)s THEN t.due_ns ELSE %(now)s END,
  attempts = CASE t.state WHEN 'set_aside' THEN 0 ELSE t.attempts END,
  state = CASE t.state WHEN 'set_aside' THEN excluded.state ELSE t.state END
"""
_GRAPHS_CHANGED = """
WITH due AS (
  SELECT case_id FROM task WHERE tenant = %(tenant)s AND state <> 'set_aside'
     AND case_id IN (SELECT case_id FROM concern
       WHERE tenant = %(tenant)s AND graph_key = ANY(%(graphs)s))
     AND (leased_until_ns > %(now)s OR due_ns IS NULL
       OR due_ns > greatest(not_before_ns, %(now)s)) ORDER BY case_id FOR UPDATE)
UPDATE task t SET
  touched = CASE WHEN t.leased_until_ns > %(now)s THEN greatest(t.touched, 1) ELSE 0 END,
  due_ns = CASE WHEN t.leased_until_ns > %(now)s THEN t.due_ns
    ELSE greatest(t.not_before_ns, %(now)s) END
  FROM due WHERE t.tenant = %(tenant)s AND t.case_id = due.case_id
"""
_TAKE = """
WITH due AS (
  SELECT case_id FROM task WHERE tenant = %(tenant)s AND due_ns <= %(now)s
   ORDER BY due_ns, case_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
UPDATE task t SET worker = %(worker)s, token = token + 1, attempts = attempts + 1, touched = 0,
  leased_until_ns = %(until)s, due_ns = %(until)s
  FROM due WHERE t.tenant = %(tenant)s AND t.case_id = due.case_id
  RETURNING t.case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,
    token, since_ns, state = 'judged', attempts, step_ns
"""
_CLAIM = """
UPDATE task t SET worker = %(worker)s, token = token + 1, attempts = attempts + 1, touched = 0,
  leased_until_ns = %(until)s, due_ns = %(until)s,
  state = CASE state WHEN 'set_aside' THEN 'waiting' ELSE state END
  WHERE tenant = %(tenant)s AND case_id = %(case_id)s AND leased_until_ns <= %(now)s
  RETURNING t.case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,
    token, since_ns, state = 'judged', attempts, step_ns
"""
_RENEW = """
WITH mine AS (
  SELECT case_id FROM task WHERE tenant = %(tenant)s AND worker = %(worker)s
     AND leased_until_ns > %(now)s ORDER BY case_id FOR UPDATE)
UPDATE task t SET leased_until_ns = %(until)s, due_ns = %(until)s
  FROM mine WHERE t.tenant = %(tenant)s AND t.case_id = mine.case_id
"""
_RELEASE = """
UPDATE task SET worker = '', leased_until_ns = 0, attempts = 0, last_error = '',
  state = %(state)s, not_before_ns = %(not_before)s, step_ns = %(step)s, since_ns = %(since)s,
  touched = 0, due_ns = CASE touched WHEN 2 THEN %(now)s
    WHEN 1 THEN greatest(%(not_before)s, %(now)s) ELSE %(due)s END
  WHERE tenant = %(tenant)s AND case_id = %(case_id)s AND token = %(token)s AND worker <> ''
"""
_RESOLVED = (
    "DELETE FROM task WHERE tenant = %(tenant)s AND case_id = %(case_id)s"
    " AND token = %(token)s AND worker <> ''"
)
_FAIL = """
UPDATE task SET worker = '', leased_until_ns = 0, touched = 0, last_error = %(error)s,
  due_ns = %(due)s, state = CASE WHEN %(due)s::bigint IS NULL THEN 'set_aside' ELSE state END
  WHERE tenant = %(tenant)s AND case_id = %(case_id)s AND token = %(token)s AND worker <> ''
"""
_QUEUED = """
SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id
  FROM task WHERE tenant = %(tenant)s
   AND (answered_ns, case_id) > (%(answered_ns)s, %(case_id)s) AND graph_id <> ''
   AND (%(graph_id)s = ''::bytea OR graph_id = %(graph_id)s)
 ORDER BY answered_ns, case_id LIMIT %(limit)s
"""
_UNRESOLVED = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id"
    " FROM task WHERE tenant = %s AND case_id > %s AND state = 'unresolved'"
    " ORDER BY case_id LIMIT %s"
)
_WAITING = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id"
    " FROM task WHERE tenant = %s AND state = 'waiting'"
    " ORDER BY answered_ns DESC, case_id LIMIT %s"
)
_SET_ASIDE = (
    "SELECT case_id, trace_id, span_id, graph_id, answered_ns, response_id, conversation_id,"
    " last_error, attempts FROM task WHERE tenant = %s AND state = 'set_aside'"
    " AND (%s = ''::bytea OR graph_id = %s) ORDER BY answered_ns, case_id LIMIT %s"
)
_READ_UNTIL = (
    "INSERT INTO read_until VALUES (%s, %s, %s) ON CONFLICT (tenant) DO UPDATE"
    " SET epoch = excluded.epoch, number = excluded.number"
)
_CONCERN = (
    "INSERT INTO concern SELECT %s, graph_key, %s FROM unnest(%s::bytea[]) graph_key"
    " ON CONFLICT DO NOTHING"
)
_FIELDS = len(QueuedCase._fields)


class StoredError(Exception):
    """The verdicts of a case are others than the caller read: nothing of the transaction
    happens."""


class PostgresCaseQueue:
    """Implements :class:`~memtrace_collector.store.base.CaseQueue` for one tenant."""

    def __init__(self, database: Database, tenant: str = DEFAULT_TENANT) -> None:
        self._database = database
        self.bind(tenant)

    def bind(self, tenant: str) -> None:
        """Be about this tenant from now on."""
        self.tenant = tenant
        self._tenant = keys.name_bytes(tenant)

    def announce(
        self,
        cases: Iterable[QueuedCase],
        graph_ids: Iterable[str],
        until: Change | None,
        now_ns: int,
    ) -> None:
        announced = sorted(cases)
        graphs = [keys.wide_key(graph_id) for graph_id in graph_ids]

        def write(connection: Connection) -> None:
            announce(connection, self._tenant, announced, now_ns)
            if graphs:
                parameters = {"tenant": self._tenant, "graphs": graphs, "now": now_ns}
                connection.execute(_GRAPHS_CHANGED, parameters)
            if until is not None:
                connection.execute(_READ_UNTIL, (self._tenant, *until))

        self._database.transaction(write)

    def read_until(self) -> Change | None:
        rows = self._database.query(
            "SELECT epoch, number FROM read_until WHERE tenant = %s", (self._tenant,)
        )
        return Change(*rows[0]) if rows else None

    def take(self, worker: str, now_ns: int, lease_ns: int, limit: int = 1) -> list[Lease]:
        parameters = self._lease(worker, now_ns, lease_ns) | {"limit": limit}
        rows = self._database.query(_TAKE, parameters)
        return [_lease(row) for row in rows]

    def claim(self, case_id: str, worker: str, now_ns: int, lease_ns: int) -> Lease | None:
        parameters = self._lease(worker, now_ns, lease_ns) | {"case_id": case_id}
        rows = self._database.query(_CLAIM, parameters)
        return _lease(rows[0]) if rows else None

    def renew(self, worker: str, now_ns: int, lease_ns: int) -> int:
        return self._database.change(_RENEW, self._lease(worker, now_ns, lease_ns))

    def release(
        self,
        lease: Lease,
        schedule: Schedule,
        now_ns: int,
        verdict: dict[str, object] | None = None,
        outbox: Iterable[OutboxEntry] = (),
    ) -> bool:
        entries = list(outbox)
        parameters = self._held(lease) | {
            "state": schedule.state,
            "not_before": schedule.not_before_ns,
            "step": schedule.step_ns,
            "since": schedule.since_ns,
            "due": schedule.due_ns,
            "now": now_ns,
        }
        case_id = lease.case.case_id
        graphs = sorted(keys.wide_key(graph_id) for graph_id in schedule.graph_ids)

        def write(connection: Connection) -> bool:
            if connection.execute(_RELEASE, parameters).rowcount != 1:
                return False
            connection.execute(
                "DELETE FROM concern WHERE tenant = %s AND case_id = %s", (self._tenant, case_id)
            )
            connection.execute(_CONCERN, (self._tenant, case_id, graphs))
            if verdict is not None and not put_verdict(connection, self._tenant, verdict, entries):
                raise StoredError
            return True

        return self._unless_stored(write)

    def resolve(self, lease: Lease, cases: Iterable[QueuedCase], now_ns: int) -> bool:
        found = sorted(cases)

        def write(connection: Connection) -> bool:
            removed = connection.execute(_RESOLVED, self._held(lease)).rowcount
            if removed == 1:
                announce(connection, self._tenant, found, now_ns)
            return removed == 1

        return self._database.transaction(write)

    def fail(self, lease: Lease, error: str, retry_at_ns: int | None) -> bool:
        parameters = self._held(lease) | {"error": keys.name_bytes(error), "due": retry_at_ns}
        return self._database.change(_FAIL, parameters) == 1

    def queued(
        self, graph_id: str = "", after: QueuedCase | None = None, limit: int = 500
    ) -> list[QueuedCase]:
        parameters = {
            "tenant": self._tenant,
            "answered_ns": after.answered_ns if after else -1,
            "case_id": after.case_id if after else "",
            "graph_id": keys.name_bytes(graph_id),
            "limit": limit,
        }
        return [_case(row) for row in self._database.query(_QUEUED, parameters)]

    def unresolved(self, after: QueuedCase | None = None, limit: int = 500) -> list[QueuedCase]:
        parameters = (self._tenant, after.case_id if after else "", limit)
        return [_case(row) for row in self._database.query(_UNRESOLVED, parameters)]

    def waiting(self, limit: int = 500) -> list[QueuedCase]:
        return [_case(row) for row in self._database.query(_WAITING, (self._tenant, limit))]

    def set_aside(self, graph_id: str = "", limit: int = 1_000) -> list[SetAside]:
        graph = keys.name_bytes(graph_id)
        rows = self._database.query(_SET_ASIDE, (self._tenant, graph, graph, limit))
        return [SetAside(_case(row), row[-2].decode(), row[-1]) for row in rows]

    def queue_counts(self) -> dict[str, int]:
        rows = self._database.query(
            "SELECT state, count(*) FROM task WHERE tenant = %s GROUP BY state", (self._tenant,)
        )
        return dict.fromkeys(STATES, 0) | dict(rows)

    def _unless_stored(self, write: Callable[[Connection], bool]) -> bool:
        """Run it as one transaction; False, and no change, when it finds a revision stored."""
        try:
            return self._database.transaction(write)
        except StoredError:
            return False

    def _lease(self, worker: str, now_ns: int, lease_ns: int) -> dict[str, object]:
        return {
            "tenant": self._tenant,
            "worker": worker,
            "now": now_ns,
            "until": now_ns + lease_ns,
        }

    def _held(self, lease: Lease) -> dict[str, object]:
        return {"tenant": self._tenant, "case_id": lease.case.case_id, "token": lease.token}


def announce(
    connection: Connection, tenant: bytes, cases: Iterable[QueuedCase], now_ns: int
) -> None:
    """Flagged answers into the queue; see :meth:`CaseQueue.announce`."""
    rows = [
        case._asdict()
        | {
            "tenant": tenant,
            "graph_id": keys.name_bytes(case.graph_id),
            "response_id": keys.name_bytes(case.response_id),
            "conversation_id": keys.name_bytes(case.conversation_id),
            "state": WAITING if case.is_resolved else UNRESOLVED,
            "now": now_ns,
        }
        for case in cases
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_ANNOUNCE, rows)


def _case(row: tuple[Any, ...]) -> QueuedCase:
    case_id, trace_id, span_id, graph_id, answered_ns, *names = row[:_FIELDS]
    response_id, conversation_id = names
    return QueuedCase(
        case_id,
        trace_id,
        span_id,
        graph_id.decode(),
        answered_ns,
        response_id.decode(),
        conversation_id.decode(),
    )


def _lease(row: tuple[Any, ...]) -> Lease:
    token, since_ns, is_judged, attempts, step_ns = row[_FIELDS:]
    return Lease(_case(row), token, since_ns, is_judged, attempts, step_ns)
