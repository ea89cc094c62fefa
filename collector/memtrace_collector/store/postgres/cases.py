"""The case store in PostgreSQL: queue, verdicts and the outbox of every process."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store.base import DEFAULT_DESTINATION, ErasedCases, Longest, OutboxEntry
from memtrace_collector.store.outbox_rows import PENDING, counts_of, entry_of, state_after
from memtrace_collector.store.postgres import cases_erase, keys
from memtrace_collector.store.postgres.cases_queue import (
    PostgresCaseQueue,
    StoredError,
    announce,
)
from memtrace_collector.store.postgres.cases_rows import put_judgement, put_outbox, put_verdict
from memtrace_collector.store.postgres.cases_schema import CASES
from memtrace_collector.store.postgres.database import Connection, Database
from memtrace_collector.store.postgres.report_schema import REPORT
from memtrace_collector.store.queue import WAITING, QueuedCase
from memtrace_collector.store.short_verdicts import MAX_LISTED, ShortVerdict, short_verdict
from memtrace_collector.store.verdicts import body_of, revision_of, verdict_of

_ALL = """
SELECT body FROM verdict WHERE tenant = %(tenant)s
   AND (%(graph_key)s::bytea IS NULL OR graph_key = %(graph_key)s)
 ORDER BY created, case_id, revision
"""
_CURRENT = """
SELECT body FROM verdict v WHERE tenant = %(tenant)s
   AND (%(graph_key)s::bytea IS NULL OR graph_key = %(graph_key)s) AND revision =
     (SELECT max(revision) FROM verdict WHERE tenant = v.tenant AND case_id = v.case_id)
 ORDER BY created, case_id, revision
"""
_LONGEST = (
    "SELECT (SELECT min(since_ns) FROM task WHERE tenant = %(tenant)s AND state = %(waiting)s),"
    " (SELECT created FROM verdict JOIN (SELECT tenant, case_id, revision FROM outbox"
    " WHERE tenant = %(tenant)s AND state = %(pending)s ORDER BY number LIMIT 1) oldest"
    " USING(tenant, case_id, revision))"
)
_REVISIONS = "SELECT body FROM verdict WHERE tenant = %s AND case_id = %s ORDER BY revision"
_SHORT = (
    "SELECT body FROM verdict v WHERE tenant = %s AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = v.tenant AND case_id = v.case_id)"
    " ORDER BY created DESC, case_id DESC LIMIT %s"
)
_LAST = (
    "SELECT body FROM verdict WHERE tenant = %s AND case_id = %s"
    " AND (%s::text = '' OR method = %s) ORDER BY revision DESC LIMIT 1"
)
_COUNTS = (
    "SELECT stage, error_type, method, count(*) FROM verdict v WHERE tenant = %s AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = v.tenant AND case_id = v.case_id)"
    " GROUP BY stage, error_type, method"
)
_REVISION = "SELECT FROM verdict WHERE tenant = %s AND case_id = %s AND revision = %s FOR KEY SHARE"
_AMEND = """
UPDATE verdict v SET body = %(body)s
 WHERE tenant = %(tenant)s AND case_id = %(id)s AND revision = %(revision)s AND NOT EXISTS
   (SELECT FROM verdict n WHERE n.tenant = v.tenant AND n.case_id = v.case_id
       AND n.revision > v.revision)
"""
_JUDGEMENTS = (
    "SELECT machine_stage, agreement, count(*) FROM judgement j WHERE tenant = %s AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = j.tenant AND case_id = j.case_id)"
    " GROUP BY machine_stage, agreement"
)
_NEVER_SENT = (
    "SELECT body FROM verdict v WHERE tenant = %s AND case_id > %s AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = v.tenant AND case_id = v.case_id)"
    " AND NOT EXISTS (SELECT FROM outbox o WHERE o.tenant = v.tenant"
    " AND o.case_id = v.case_id AND o.revision = v.revision) ORDER BY case_id LIMIT %s"
)
_DUE = (
    "SELECT id, case_id, revision, signal, payload, destination, attempts, not_before_ns,"
    " last_error FROM outbox WHERE tenant = %s AND state = 'pending' AND destination = %s"
    " AND not_before_ns <= %s ORDER BY not_before_ns, number LIMIT %s"
)
# Two statements: before the table was first analyzed, the plan of one reads all of it.
_FREE = (
    "SELECT id, case_id, revision, signal, payload, destination, attempts, not_before_ns,"
    " last_error FROM outbox WHERE tenant = %s AND state = 'pending' AND destination = %s"
    " AND not_before_ns <= %s AND (leased_until_ns <= %s OR sender = %s)"
    " ORDER BY not_before_ns, number LIMIT %s FOR UPDATE SKIP LOCKED"
)
_LEASE = (
    "UPDATE outbox SET sender = %s, leased_until_ns = %s"
    " WHERE tenant = %s AND destination = %s AND id = %s"
)
_GIVEN_UP = (
    "SELECT id, case_id, revision, signal, payload, destination, attempts, not_before_ns,"
    " last_error FROM outbox WHERE tenant = %s AND state = 'abandoned' ORDER BY number LIMIT %s"
)
_DELIVERED = (
    "UPDATE outbox SET state = 'delivered', delivered_ns = %s, attempts = attempts + 1"
    " WHERE tenant = %s AND destination = %s AND id = %s AND state = 'pending'"
)
_FAILED = (
    "UPDATE outbox SET state = %s, attempts = attempts + 1, last_error = %s, leased_until_ns = 0,"
    " not_before_ns = coalesce(%s, not_before_ns)"
    " WHERE tenant = %s AND destination = %s AND id = %s AND state = 'pending'"
)
_DECLINED = (
    "UPDATE outbox SET state = 'declined', attempts = attempts + 1, last_error = %s, payload = ''"
    " WHERE tenant = %s AND destination = %s AND id = %s AND state = 'pending'"
)
_NOT_SEEN = (
    "UPDATE outbox SET state = %s, last_error = %s, leased_until_ns = 0,"
    " not_before_ns = coalesce(%s, not_before_ns)"
    " WHERE tenant = %s AND destination = %s AND id = %s AND state = 'delivered' AND payload <> ''"
)
_REOPEN = (
    "UPDATE outbox SET state = 'pending', attempts = 0, last_error = '', not_before_ns = %s"
    " WHERE tenant = %s AND state = 'abandoned'"
)
_FORGET = """
WITH kept AS (
  SELECT destination, id FROM outbox WHERE tenant = %(tenant)s AND state = 'delivered'
     AND payload <> '' AND delivered_ns < %(before)s
   ORDER BY delivered_ns LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
UPDATE outbox o SET payload = '' FROM kept
 WHERE o.tenant = %(tenant)s AND o.destination = kept.destination AND o.id = kept.id
"""
_TENANTS = (
    "SELECT tenant FROM task UNION SELECT tenant FROM verdict UNION SELECT tenant FROM outbox"
)
_PUT_PLACE = (
    "INSERT INTO place VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE"
    " SET segment = excluded.segment, position = excluded.position"
)


class PostgresCaseStore(PostgresCaseQueue):
    """Implements :class:`~memtrace_collector.store.base.CaseStore` for one tenant.

    Args:
        dsn: a ``postgresql://`` URL.
        log_id: names the log whose cursors are meant; each processor has one of its own.

    Raises:
        ConfigError: the URL cannot be read.
        UnreachableError: nobody answers there, or refuses us.
        WrongUseError: a newer release made the tables.
    """

    def __init__(self, dsn: str, *, log_id: str = "", tenant: str = DEFAULT_TENANT) -> None:
        super().__init__(Database(dsn, CASES, REPORT), tenant)
        self._log_id = log_id

    def for_tenant(self, tenant: str) -> PostgresCaseStore:
        store = copy.copy(self)
        store.bind(tenant)
        return store

    def tenants(self) -> list[str]:
        return sorted(row[0].decode() for row in self._database.query(_TENANTS))

    def cursor(self, name: str) -> LogPosition:
        rows = self._database.query(
            "SELECT segment, position FROM place WHERE name = %s", (self._place(name),)
        )
        return LogPosition(*rows[0]) if rows else START

    def set_cursor(self, name: str, position: LogPosition) -> None:
        self._database.change(_PUT_PLACE, (self._place(name), *position))

    def erase(self, graph_id: str | None) -> ErasedCases:
        """See :meth:`CaseStore.erase`. Nothing can read what is gone; the server writes over its
        bytes in time, or at once when the operator calls ``VACUUM FULL``."""
        return cases_erase.erase(self._database, self._tenant, graph_id)

    def save_verdict(self, verdict: dict[str, object], outbox: Iterable[OutboxEntry]) -> bool:
        """See :meth:`CaseStore.save_verdict`; ``verdict`` needs ``id``, ``revision``,
        ``graph_id`` and ``created``."""
        entries = list(outbox)
        return self._database.transaction(
            lambda connection: put_verdict(connection, self._tenant, verdict, entries)
        )

    def enqueue(self, outbox: Iterable[OutboxEntry]) -> None:
        entries = list(outbox)

        def write(connection: Connection) -> None:
            put_outbox(connection, self._tenant, entries)

        self._database.transaction(write)

    def verdict(self, case_id: str, method: str = "") -> dict[str, object] | None:
        rows = self._database.query(_LAST, (self._tenant, case_id, method, method))
        return verdict_of(rows[0]) if rows else None

    def verdicts(
        self, graph_id: str | None = None, *, history: bool = False
    ) -> list[dict[str, object]]:
        graph_key = None if graph_id is None else keys.wide_key(graph_id)
        parameters = {"tenant": self._tenant, "graph_key": graph_key}
        rows = self._database.query(_ALL if history else _CURRENT, parameters)
        return [verdict_of(row) for row in rows]

    def revisions(self, case_id: str) -> list[dict[str, object]]:
        rows = self._database.query(_REVISIONS, (self._tenant, case_id))
        return [verdict_of(row) for row in rows]

    def short_verdicts(self, limit: int = MAX_LISTED) -> list[ShortVerdict]:
        rows = self._database.query(_SHORT, (self._tenant, limit))
        return [short_verdict(body) for (body,) in rows]

    def verdict_counts(self) -> dict[tuple[str, str, str], int]:
        rows = self._database.query(_COUNTS, (self._tenant,))
        return {(stage, error_type, method): count for stage, error_type, method, count in rows}

    def judge(self, verdict: dict[str, object], case: QueuedCase, now_ns: int) -> bool:
        before = (self._tenant, case.case_id, revision_of(verdict) - 1)

        def write(connection: Connection) -> bool:
            announce(connection, self._tenant, [case], now_ns)  # an erasure waits for its lock
            if connection.execute(_REVISION, before).fetchone() is None:
                raise StoredError
            if not put_verdict(connection, self._tenant, verdict, ()):
                raise StoredError
            return True

        return self._unless_stored(write)

    def amend(self, verdict: dict[str, object]) -> bool:
        key = {"tenant": self._tenant, "id": verdict["id"], "revision": verdict["revision"]}
        parameters = key | {"body": body_of(verdict).encode()}

        def write(connection: Connection) -> bool:
            written = connection.execute(_AMEND, parameters).rowcount == 1
            if written:
                put_judgement(connection, self._tenant, verdict)
            return written

        return self._database.transaction(write)

    def judgement_counts(self) -> dict[tuple[str, str], int]:
        rows = self._database.query(_JUDGEMENTS, (self._tenant,))
        return {(stage, agreement): count for stage, agreement, count in rows}

    def verdicts_without_outbox(self, after: str = "", limit: int = 100) -> list[dict[str, object]]:
        rows = self._database.query(_NEVER_SENT, (self._tenant, after, limit))
        return [verdict_of(row) for row in rows]

    def outbox_due(
        self, now_ns: int, limit: int = 100, destination: str = DEFAULT_DESTINATION
    ) -> list[OutboxEntry]:
        rows = self._database.query(_DUE, (self._tenant, destination, now_ns, limit))
        return [entry_of(row) for row in rows]

    def outbox_take(
        self,
        sender: str,
        now_ns: int,
        lease_ns: int,
        limit: int = 1,
        destination: str = DEFAULT_DESTINATION,
    ) -> list[OutboxEntry]:
        free = (self._tenant, destination, now_ns, now_ns, sender, limit)
        lease = (sender, now_ns + lease_ns, self._tenant, destination)

        def write(connection: Connection) -> list[OutboxEntry]:
            rows = connection.execute(_FREE, free, binary=True).fetchall()
            taken = [entry_of(row) for row in rows]
            for each in taken:
                connection.execute(_LEASE, (*lease, each.id))
            return taken

        return self._database.transaction(write)

    def outbox_delivered(
        self, entry_id: str, now_ns: int, destination: str = DEFAULT_DESTINATION
    ) -> None:
        self._database.change(_DELIVERED, (now_ns, self._tenant, destination, entry_id))

    def outbox_failed(
        self,
        entry_id: str,
        error: str,
        retry_at_ns: int | None,
        destination: str = DEFAULT_DESTINATION,
    ) -> None:
        state = state_after(retry_at_ns)
        tried = (state, keys.name_bytes(error), retry_at_ns)
        self._database.change(_FAILED, (*tried, self._tenant, destination, entry_id))

    def outbox_declined(
        self, entry_id: str, reason: str, destination: str = DEFAULT_DESTINATION
    ) -> None:
        said = keys.name_bytes(reason)
        self._database.change(_DECLINED, (said, self._tenant, destination, entry_id))

    def outbox_not_seen(
        self,
        entry_id: str,
        reason: str,
        retry_at_ns: int | None,
        destination: str = DEFAULT_DESTINATION,
    ) -> bool:
        state = state_after(retry_at_ns)
        found = (state, keys.name_bytes(reason), retry_at_ns)
        return bool(self._database.change(_NOT_SEEN, (*found, self._tenant, destination, entry_id)))

    def outbox_abandoned(self, limit: int = 1_000) -> list[OutboxEntry]:
        return [entry_of(row) for row in self._database.query(_GIVEN_UP, (self._tenant, limit))]

    def outbox_reopen(self, now_ns: int) -> int:
        return self._database.change(_REOPEN, (now_ns, self._tenant))

    def outbox_forget(self, before_ns: int, limit: int = 1_000) -> int:
        parameters = {"tenant": self._tenant, "before": before_ns, "limit": limit}
        return self._database.change(_FORGET, parameters)

    def outbox_counts(self) -> dict[str, int]:
        rows = self._database.query(
            "SELECT state, count(*) FROM outbox WHERE tenant = %s GROUP BY state", (self._tenant,)
        )
        return counts_of(rows)

    def longest(self) -> Longest:
        parameters = {"tenant": self._tenant, "waiting": WAITING, "pending": PENDING}
        (found,) = self._database.query(_LONGEST, parameters)
        return Longest.of(*found)

    def close(self) -> None:
        self._database.close()

    def _place(self, name: str) -> str:
        return f"{self._log_id}/{name}"
