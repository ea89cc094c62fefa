"""The embedded case store: queue, verdicts and the outbox in one SQLite file.

It is the only copy of what it holds, so every transaction is on disk before a call returns
(``synchronous=FULL``). Safe with several threads and processes over one file.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store import cases_schema
from memtrace_collector.store.base import DEFAULT_DESTINATION, ErasedCases, Longest, OutboxEntry
from memtrace_collector.store.connections import Connections
from memtrace_collector.store.outbox_rows import (
    ABANDONED,
    DECLINED,
    DELIVERED,
    PENDING,
    counts_of,
    entry_of,
    state_after,
)
from memtrace_collector.store.queue import WAITING, QueuedCase
from memtrace_collector.store.short_verdicts import MAX_LISTED, ShortVerdict, short_verdict
from memtrace_collector.store.sqlite_erase import erase_graph, erase_tenant, forget_judged
from memtrace_collector.store.sqlite_queue import (
    SqliteCaseQueue,
    announce,
    is_stored,
    put_judgement,
    put_outbox,
    put_verdict,
)
from memtrace_collector.store.verdicts import body_of, revision_of, verdict_of

_CACHE_KIB = 8 * 1024
_ALL = "SELECT body FROM verdict v WHERE tenant = ?1"
_CURRENT = (
    "SELECT body FROM verdict v WHERE tenant = ?1 AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = v.tenant AND case_id = v.case_id)"
)
_LONGEST = (
    "SELECT (SELECT min(since_ns) FROM task WHERE tenant = ?1 AND state = ?2),"
    " (SELECT created FROM verdict JOIN outbox USING(tenant, case_id, revision) WHERE number ="
    " (SELECT min(number) FROM outbox INDEXED BY outbox_due WHERE tenant = ?1 AND state = ?3))"
)
_REVISIONS = "SELECT body FROM verdict WHERE tenant = ? AND case_id = ? ORDER BY revision"
_SHORT = (
    "SELECT CAST(body AS BLOB) FROM verdict v INDEXED BY verdict_created"
    " WHERE tenant = ?1 AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = v.tenant AND case_id = v.case_id)"
    " ORDER BY created DESC, case_id DESC LIMIT ?2"
)
_LAST = (
    "SELECT body FROM verdict WHERE tenant = ?1 AND case_id = ?2"
    " AND (?3 = '' OR json_extract(body, '$.method') = ?3) ORDER BY revision DESC LIMIT 1"
)
_COUNTS = (
    "SELECT label, count(*) FROM verdict v WHERE tenant = ?1 AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = v.tenant AND case_id = v.case_id)"
    " GROUP BY label"
)
_AMEND = (
    "UPDATE verdict SET body = ?4 WHERE tenant = ?1 AND case_id = ?2 AND revision = ?3"
    " AND ?3 = (SELECT max(revision) FROM verdict WHERE tenant = ?1 AND case_id = ?2)"
)
_JUDGEMENTS = (
    "SELECT machine_stage, agreement, count(*) FROM judgement j WHERE tenant = ?1 AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = j.tenant AND case_id = j.case_id)"
    " GROUP BY machine_stage, agreement"
)
_NEVER_SENT = (
    "SELECT body FROM verdict v WHERE tenant = ?1 AND case_id > ?2 AND revision ="
    " (SELECT max(revision) FROM verdict WHERE tenant = v.tenant AND case_id = v.case_id)"
    " AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.tenant = v.tenant"
    " AND o.case_id = v.case_id AND o.revision = v.revision) ORDER BY case_id LIMIT ?3"
)
_ROWS = (
    "SELECT id, case_id, revision, signal, payload, destination, attempts, not_before_ns,"
    " last_error FROM outbox WHERE tenant = ? AND state = ?"
)
_TAKE = """
UPDATE outbox SET sender = ?2, leased_until_ns = ?4 WHERE number IN (
  SELECT number FROM outbox WHERE tenant = ?1 AND state = 'pending' AND destination = ?5
     AND not_before_ns <= ?3 AND (leased_until_ns <= ?3 OR sender = ?2)
   ORDER BY not_before_ns, number LIMIT ?6)
  RETURNING id, case_id, revision, signal, payload, destination, attempts, not_before_ns,
    last_error, number
"""
_NOT_BEFORE = 7
_FORGET = (
    "UPDATE outbox SET payload = x'' WHERE number IN (SELECT number FROM outbox WHERE tenant = ?"
    " AND state = 'delivered' AND payload <> x'' AND delivered_ns < ?"
    " ORDER BY delivered_ns LIMIT ?)"
)
_NOT_SEEN = (
    "UPDATE outbox SET state = ?, last_error = ?, leased_until_ns = 0,"
    " not_before_ns = ifnull(?, not_before_ns) WHERE tenant = ? AND destination = ? AND id = ?"
    " AND state = 'delivered' AND payload <> x''"
)
_TENANTS = (
    "SELECT tenant FROM task UNION SELECT tenant FROM verdict UNION SELECT tenant FROM outbox"
)


class SqliteCaseStore(SqliteCaseQueue):
    """Implements :class:`~memtrace_collector.store.base.CaseStore` for one tenant."""

    def __init__(self, path: Path, tenant: str = DEFAULT_TENANT) -> None:
        connections = Connections(
            path, cases_schema.CASES, synchronous="FULL", cache_kib=_CACHE_KIB
        )
        super().__init__(connections, tenant)

    def for_tenant(self, tenant: str) -> SqliteCaseStore:
        store = copy.copy(self)
        store.tenant = tenant
        return store

    def tenants(self) -> list[str]:
        return sorted(tenant for (tenant,) in self._connections.query(_TENANTS))

    def cursor(self, name: str) -> LogPosition:
        row = self._connections.query(
            "SELECT segment, offset FROM cursor WHERE name = ?", (name,)
        ).fetchone()
        return LogPosition(*row) if row else START

    def set_cursor(self, name: str, position: LogPosition) -> None:
        with self._connections.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO cursor VALUES (?, ?, ?)", (name, *position))

    def erase(self, graph_id: str | None) -> ErasedCases:
        with self._connections.transaction() as connection:
            if graph_id is None:
                erased = erase_tenant(connection, self.tenant)
            else:
                erased = erase_graph(connection, self.tenant, graph_id)
        self._connections.scrub()
        return erased

    def forget_judged(self, method: str) -> int:
        """Drop the queue, and the verdicts that a method found with their deliveries, of every
        tenant, but for cases that a person judged: flags are read anew, and cases judged again.
        How many verdicts went."""
        with self._connections.transaction() as connection:
            return forget_judged(connection, method)

    def save_verdict(self, verdict: dict[str, object], outbox: Iterable[OutboxEntry]) -> bool:
        """See :meth:`CaseStore.save_verdict`; ``verdict`` needs ``id``, ``revision``,
        ``graph_id`` and ``created``."""
        with self._connections.transaction() as connection:
            return put_verdict(connection, self.tenant, verdict, outbox)

    def enqueue(self, outbox: Iterable[OutboxEntry]) -> None:
        with self._connections.transaction() as connection:
            put_outbox(connection, self.tenant, outbox)

    def verdict(self, case_id: str, method: str = "") -> dict[str, object] | None:
        row = self._connections.query(_LAST, (self.tenant, case_id, method)).fetchone()
        return verdict_of(row) if row else None

    def verdicts(
        self, graph_id: str | None = None, *, history: bool = False
    ) -> list[dict[str, object]]:
        rows = self._connections.query(
            f"{_ALL if history else _CURRENT} AND (?2 IS NULL OR graph_id = ?2)"
            " ORDER BY created, case_id, revision",
            (self.tenant, graph_id),
        )
        return [verdict_of(row) for row in rows]

    def revisions(self, case_id: str) -> list[dict[str, object]]:
        rows = self._connections.query(_REVISIONS, (self.tenant, case_id))
        return [verdict_of(row) for row in rows]

    def short_verdicts(self, limit: int = MAX_LISTED) -> list[ShortVerdict]:
        rows = self._connections.query(_SHORT, (self.tenant, limit))
        return [short_verdict(body) for (body,) in rows]

    def verdict_counts(self) -> dict[tuple[str, str, str], int]:
        counts = {}
        for label, count in self._connections.query(_COUNTS, (self.tenant,)):
            stage, error_type, method = json.loads(label)
            counts[stage, error_type, method] = count
        return counts

    def judge(self, verdict: dict[str, object], case: QueuedCase, now_ns: int) -> bool:
        with self._connections.transaction() as connection:
            if not is_stored(connection, self.tenant, case.case_id, revision_of(verdict) - 1):
                return False
            written = put_verdict(connection, self.tenant, verdict, ())
            if written:
                announce(connection, self.tenant, [case], now_ns)
        return written

    def amend(self, verdict: dict[str, object]) -> bool:
        body = body_of(verdict)
        with self._connections.transaction() as connection:
            parameters = (self.tenant, verdict["id"], verdict["revision"], body)
            written = connection.execute(_AMEND, parameters).rowcount == 1
            if written:
                put_judgement(connection, self.tenant, verdict)
        return written

    def judgement_counts(self) -> dict[tuple[str, str], int]:
        rows = self._connections.query(_JUDGEMENTS, (self.tenant,))
        return {(stage, agreement): count for stage, agreement, count in rows}

    def verdicts_without_outbox(self, after: str = "", limit: int = 100) -> list[dict[str, object]]:
        rows = self._connections.query(_NEVER_SENT, (self.tenant, after, limit))
        return [verdict_of(row) for row in rows]

    def outbox_due(
        self, now_ns: int, limit: int = 100, destination: str = DEFAULT_DESTINATION
    ) -> list[OutboxEntry]:
        rows = self._connections.query(
            f"{_ROWS} AND destination = ? AND not_before_ns <= ?"
            " ORDER BY not_before_ns, number LIMIT ?",
            (self.tenant, PENDING, destination, now_ns, limit),
        )
        return [entry_of(row) for row in rows]

    def outbox_take(
        self,
        sender: str,
        now_ns: int,
        lease_ns: int,
        limit: int = 1,
        destination: str = DEFAULT_DESTINATION,
    ) -> list[OutboxEntry]:
        if not self.outbox_due(now_ns, 1, destination):
            return []  # most calls end here, without the lock of the writer
        parameters = (self.tenant, sender, now_ns, now_ns + lease_ns, destination, limit)
        with self._connections.transaction() as connection:
            rows = connection.execute(_TAKE, parameters).fetchall()
        return [entry_of(row) for *row, _ in sorted(rows, key=_by_due)]

    def outbox_delivered(
        self, entry_id: str, now_ns: int, destination: str = DEFAULT_DESTINATION
    ) -> None:
        with self._connections.transaction() as connection:
            connection.execute(
                "UPDATE outbox SET state = ?, delivered_ns = ?, attempts = attempts + 1"
                " WHERE tenant = ? AND destination = ? AND id = ? AND state = ?",
                (DELIVERED, now_ns, self.tenant, destination, entry_id, PENDING),
            )

    def outbox_failed(
        self,
        entry_id: str,
        error: str,
        retry_at_ns: int | None,
        destination: str = DEFAULT_DESTINATION,
    ) -> None:
        state = state_after(retry_at_ns)
        with self._connections.transaction() as connection:
            connection.execute(
                "UPDATE outbox SET state = ?, attempts = attempts + 1, last_error = ?,"
                " leased_until_ns = 0,"
                " not_before_ns = ifnull(?, not_before_ns)"
                " WHERE tenant = ? AND destination = ? AND id = ? AND state = ?",
                (state, error, retry_at_ns, self.tenant, destination, entry_id, PENDING),
            )

    def outbox_declined(
        self, entry_id: str, reason: str, destination: str = DEFAULT_DESTINATION
    ) -> None:
        with self._connections.transaction() as connection:
            connection.execute(
                "UPDATE outbox SET state = ?, attempts = attempts + 1, last_error = ?,"
                " payload = x'' WHERE tenant = ? AND destination = ? AND id = ? AND state = ?",
                (DECLINED, reason, self.tenant, destination, entry_id, PENDING),
            )

    def outbox_not_seen(
        self,
        entry_id: str,
        reason: str,
        retry_at_ns: int | None,
        destination: str = DEFAULT_DESTINATION,
    ) -> bool:
        state = state_after(retry_at_ns)
        with self._connections.transaction() as connection:
            changed = connection.execute(
                _NOT_SEEN, (state, reason, retry_at_ns, self.tenant, destination, entry_id)
            ).rowcount
        return bool(changed)

    def outbox_abandoned(self, limit: int = 1_000) -> list[OutboxEntry]:
        rows = self._connections.query(
            f"{_ROWS} ORDER BY number LIMIT ?", (self.tenant, ABANDONED, limit)
        )
        return [entry_of(row) for row in rows]

    def outbox_reopen(self, now_ns: int) -> int:
        with self._connections.transaction() as connection:
            return connection.execute(
                "UPDATE outbox SET state = ?, attempts = 0, last_error = '', not_before_ns = ?"
                " WHERE tenant = ? AND state = ?",
                (PENDING, now_ns, self.tenant, ABANDONED),
            ).rowcount

    def outbox_forget(self, before_ns: int, limit: int = 1_000) -> int:
        with self._connections.transaction() as connection:
            return connection.execute(_FORGET, (self.tenant, before_ns, limit)).rowcount

    def outbox_counts(self) -> dict[str, int]:
        rows = self._connections.query(
            "SELECT state, count(*) FROM outbox WHERE tenant = ? GROUP BY state", (self.tenant,)
        )
        return counts_of(rows)

    def longest(self) -> Longest:
        rows = self._connections.query(_LONGEST, (self.tenant, WAITING, PENDING))
        return Longest.of(*rows.fetchone())

    def close(self) -> None:
        self._connections.close()


def _by_due(row: tuple[Any, ...]) -> tuple[int, int]:
    """As ``outbox_due`` orders them; RETURNING does not."""
    return row[_NOT_BEFORE], row[-1]
