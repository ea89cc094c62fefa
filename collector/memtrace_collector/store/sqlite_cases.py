"""The embedded case store: queue, verdicts and the outbox in one SQLite file.

It is the only copy of what it holds, so every transaction is on disk before a call returns
(``synchronous=FULL``). Safe with several threads and processes over one file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from memtrace_collector.store import cases_schema
from memtrace_collector.store.base import OutboxEntry
from memtrace_collector.store.connections import Connections
from memtrace_collector.store.sqlite_queue import SqliteCaseQueue, put_outbox, put_verdict

PENDING, DELIVERED, ABANDONED = "pending", "delivered", "abandoned"
_CACHE_KIB = 8 * 1024
_ALL = "SELECT body FROM verdict WHERE true"
_CURRENT = (
    "SELECT body FROM verdict v WHERE revision ="
    " (SELECT max(revision) FROM verdict WHERE case_id = v.case_id)"
)

_COUNTS = (
    "SELECT label, count(*) FROM verdict v WHERE revision ="
    " (SELECT max(revision) FROM verdict WHERE case_id = v.case_id) GROUP BY label"
)
_NEVER_SENT = (
    "SELECT body FROM verdict v WHERE case_id > ? AND revision ="
    " (SELECT max(revision) FROM verdict WHERE case_id = v.case_id)"
    " AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.case_id = v.case_id"
    " AND o.revision = v.revision) ORDER BY case_id LIMIT ?"
)


class SqliteCaseStore(SqliteCaseQueue):
    """Implements :class:`~memtrace_collector.store.base.CaseStore`."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            Connections(path, cases_schema.CASES, synchronous="FULL", cache_kib=_CACHE_KIB)
        )

    def save_verdict(self, verdict: dict[str, object], outbox: Iterable[OutboxEntry]) -> bool:
        """See :meth:`CaseStore.save_verdict`; ``verdict`` needs ``id``, ``revision``,
        ``graph_id`` and ``created``."""
        with self._connections.transaction() as connection:
            return put_verdict(connection, verdict, outbox)

    def enqueue(self, outbox: Iterable[OutboxEntry]) -> None:
        with self._connections.transaction() as connection:
            put_outbox(connection, outbox)

    def verdict(self, case_id: str, method: str = "") -> dict[str, object] | None:
        row = self._connections.query(
            "SELECT body FROM verdict WHERE case_id = ?1"
            " AND (?2 = '' OR json_extract(body, '$.method') = ?2) ORDER BY revision DESC LIMIT 1",
            (case_id, method),
        ).fetchone()
        return _verdict(row) if row else None

    def verdicts(
        self, graph_id: str | None = None, *, history: bool = False
    ) -> list[dict[str, object]]:
        rows = self._connections.query(
            f"{_ALL if history else _CURRENT} AND (?1 IS NULL OR graph_id = ?1)"
            " ORDER BY created, case_id, revision",
            (graph_id,),
        )
        return [_verdict(row) for row in rows]

    def verdict_counts(self) -> dict[tuple[str, str, str], int]:
        rows = self._connections.query(_COUNTS)
        counts = {}
        for label, count in rows:
            stage, error_type, method = json.loads(label)
            counts[stage, error_type, method] = count
        return counts

    def verdicts_without_outbox(self, after: str = "", limit: int = 100) -> list[dict[str, object]]:
        return [_verdict(row) for row in self._connections.query(_NEVER_SENT, (after, limit))]

    def outbox_due(self, now_ns: int, limit: int = 100) -> list[OutboxEntry]:
        rows = self._connections.query(
            "SELECT id, case_id, revision, signal, payload, attempts, not_before_ns, last_error"
            " FROM outbox WHERE state = ? AND not_before_ns <= ?"
            " ORDER BY not_before_ns, rowid LIMIT ?",
            (PENDING, now_ns, limit),
        )
        return [
            OutboxEntry(
                id=entry_id,
                case_id=case_id,
                revision=revision,
                signal=signal,
                payload=payload,
                attempts=attempts,
                not_before_ns=not_before_ns,
                last_error=last_error,
            )
            for (
                entry_id,
                case_id,
                revision,
                signal,
                payload,
                attempts,
                not_before_ns,
                last_error,
            ) in rows
        ]

    def outbox_delivered(self, entry_id: str, now_ns: int) -> None:
        with self._connections.transaction() as connection:
            connection.execute(
                "UPDATE outbox SET state = ?, delivered_ns = ?, attempts = attempts + 1"
                " WHERE id = ? AND state = ?",
                (DELIVERED, now_ns, entry_id, PENDING),
            )

    def outbox_failed(self, entry_id: str, error: str, retry_at_ns: int | None) -> None:
        state = ABANDONED if retry_at_ns is None else PENDING
        with self._connections.transaction() as connection:
            connection.execute(
                "UPDATE outbox SET state = ?, attempts = attempts + 1, last_error = ?,"
                " not_before_ns = ifnull(?, not_before_ns) WHERE id = ? AND state = ?",
                (state, error, retry_at_ns, entry_id, PENDING),
            )

    def outbox_counts(self) -> dict[str, int]:
        counts = {PENDING: 0, DELIVERED: 0, ABANDONED: 0}
        counts.update(
            self._connections.query("SELECT state, count(*) FROM outbox GROUP BY state").fetchall()
        )
        return counts

    def close(self) -> None:
        self._connections.close()


def _verdict(row: tuple[str]) -> dict[str, object]:
    verdict: dict[str, object] = json.loads(row[0])
    return verdict
