"""The embedded case store: leases, verdicts and the outbox in one SQLite file.

It is the only copy of what it holds, so every transaction is on disk before a call returns
(``synchronous=FULL``). Safe with several threads and processes over one file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from memtrace_collector.store import schema
from memtrace_collector.store.base import OutboxEntry
from memtrace_collector.store.connections import Connections

PENDING, DELIVERED, ABANDONED = "pending", "delivered", "abandoned"
_CACHE_KIB = 8 * 1024
_CURRENT = (
    "SELECT body FROM verdict v WHERE revision ="
    " (SELECT max(revision) FROM verdict WHERE case_id = v.case_id)"
)

_NEVER_SENT = (
    " AND (case_id, revision) NOT IN (SELECT case_id, revision FROM outbox)"
    " ORDER BY created, case_id"
)


class SqliteCaseStore:
    """Implements :class:`~memtrace_collector.store.base.CaseStore`."""

    def __init__(self, path: Path) -> None:
        self._connections = Connections(
            path, schema.CASES, synchronous="FULL", cache_kib=_CACHE_KIB
        )

    def claim(self, case_id: str, worker: str, now_ns: int, lease_ns: int) -> bool:
        with self._connections.transaction() as connection:
            changed = connection.execute(
                "INSERT INTO lease VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE"
                " SET worker = excluded.worker, until_ns = excluded.until_ns"
                " WHERE worker = excluded.worker OR until_ns <= ?4",
                (case_id, worker, now_ns + lease_ns, now_ns),
            ).rowcount
        return changed == 1

    def release(self, case_id: str, worker: str) -> None:
        with self._connections.transaction() as connection:
            connection.execute(
                "DELETE FROM lease WHERE case_id = ? AND worker = ?", (case_id, worker)
            )

    def save_verdict(self, verdict: dict[str, object], outbox: Iterable[OutboxEntry]) -> bool:
        """See :meth:`CaseStore.save_verdict`; ``verdict`` needs ``id``, ``revision``,
        ``graph_id`` and ``created``."""
        row = (
            verdict["id"],
            verdict["revision"],
            verdict["graph_id"],
            verdict["created"],
            json.dumps(verdict, ensure_ascii=False),
        )
        with self._connections.transaction() as connection:
            written = connection.execute(
                "INSERT OR IGNORE INTO verdict VALUES (?,?,?,?,?)", row
            ).rowcount
            if written == 1:
                _enqueue(connection, outbox)
        return written == 1

    def enqueue(self, outbox: Iterable[OutboxEntry]) -> None:
        with self._connections.transaction() as connection:
            _enqueue(connection, outbox)

    def verdict(self, case_id: str) -> dict[str, object] | None:
        row = self._connections.query(
            "SELECT body FROM verdict WHERE case_id = ? ORDER BY revision DESC LIMIT 1", (case_id,)
        ).fetchone()
        return _verdict(row) if row else None

    def verdicts(self, graph_id: str | None = None) -> list[dict[str, object]]:
        rows = self._connections.query(
            f"{_CURRENT} AND (?1 IS NULL OR graph_id = ?1) ORDER BY created, case_id", (graph_id,)
        )
        return [_verdict(row) for row in rows]

    def verdicts_without_outbox(self) -> list[dict[str, object]]:
        rows = self._connections.query(_CURRENT + _NEVER_SENT)
        return [_verdict(row) for row in rows]

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


def _enqueue(connection: sqlite3.Connection, outbox: Iterable[OutboxEntry]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO outbox(id, case_id, revision, signal, payload, not_before_ns)"
        " VALUES (?,?,?,?,?,?)",
        [(e.id, e.case_id, e.revision, e.signal, e.payload, e.not_before_ns) for e in outbox],
    )


def _verdict(row: tuple[str]) -> dict[str, object]:
    verdict: dict[str, object] = json.loads(row[0])
    return verdict
