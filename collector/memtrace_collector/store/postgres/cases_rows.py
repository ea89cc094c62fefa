"""Verdicts and rows of the outbox as they are written, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memtrace_collector.store.base import OutboxEntry
from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.database import Connection
from memtrace_collector.store.verdicts import body_of, judgement_row

_VERDICT = "INSERT INTO verdict VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
_JUDGEMENT = (
    "INSERT INTO judgement VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (tenant, case_id, revision) DO UPDATE SET judged = excluded.judged,"
    " machine_stage = excluded.machine_stage, machine_type = excluded.machine_type,"
    " stage = excluded.stage, error_type = excluded.error_type, agreement = excluded.agreement"
)
_OUTBOX = (
    "INSERT INTO outbox(tenant, destination, id, case_id, revision, signal, payload,"
    " not_before_ns) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)


def put_verdict(
    connection: Connection,
    tenant: bytes,
    verdict: Mapping[str, object],
    outbox: Iterable[OutboxEntry],
) -> bool:
    """A verdict with its outbox rows; False, and no change, when its revision is there."""
    graph_key = keys.wide_key(str(verdict["graph_id"]))
    label = [str(verdict.get(name) or "") for name in ("stage", "error_type", "method")]
    body = body_of(verdict).encode()
    key = (tenant, verdict["id"], verdict["revision"], graph_key, verdict["created"])
    written = connection.execute(_VERDICT, (*key, *label, body)).rowcount
    if written == 1:
        put_judgement(connection, tenant, verdict)
        put_outbox(connection, tenant, outbox)
    return written == 1


def put_judgement(connection: Connection, tenant: bytes, verdict: Mapping[str, object]) -> None:
    """The row of what a person said, if it is a person's verdict; it takes an older one's place."""
    row = judgement_row(verdict)
    if row is not None:
        connection.execute(_JUDGEMENT, (tenant, verdict["id"], verdict["revision"], *row))


def put_outbox(connection: Connection, tenant: bytes, outbox: Iterable[OutboxEntry]) -> None:
    """Rows that are there stay as they are."""
    rows = [
        (
            *(tenant, entry.destination, entry.id, entry.case_id, entry.revision),
            *(entry.signal, entry.payload, entry.not_before_ns),
        )
        for entry in outbox
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_OUTBOX, rows)
