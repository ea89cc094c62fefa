"""Erasing a graph or a tenant from the case store's tables."""

from __future__ import annotations

import sqlite3

from memtrace_collector.store.base import ErasedCases
from memtrace_collector.store.connections import json_list

# A verdict speaks of every graph that its case read from, so it goes with each of them.
_CASES = (
    "SELECT case_id FROM task WHERE tenant = ?1 AND graph_id = ?2"
    " UNION SELECT case_id FROM concern WHERE tenant = ?1 AND graph_id = ?2"
    " UNION SELECT case_id FROM verdict WHERE tenant = ?1 AND graph_id = ?2"
)
_OUTBOX = "DELETE FROM outbox WHERE tenant = ?1 AND case_id IN (SELECT value FROM json_each(?2))"
_VERDICTS = "DELETE FROM verdict WHERE tenant = ?1 AND case_id IN (SELECT value FROM json_each(?2))"
_JUDGEMENTS = (
    "DELETE FROM judgement WHERE tenant = ?1 AND case_id IN (SELECT value FROM json_each(?2))"
)
_TASKS = "DELETE FROM task WHERE tenant = ?1 AND graph_id = ?2"
_JUDGE_AGAIN = (
    "UPDATE task SET state = 'waiting', due_ns = 0, not_before_ns = 0, touched = 0, worker = '',"
    " leased_until_ns = 0, attempts = 0, last_error = ''"
    " WHERE tenant = ?1 AND case_id IN (SELECT value FROM json_each(?2))"
)
_CONCERNS = (
    "DELETE FROM concern WHERE tenant = ?1 AND (graph_id = ?2"
    " OR case_id NOT IN (SELECT case_id FROM task WHERE tenant = ?1))"
)


def erase_graph(connection: sqlite3.Connection, tenant: str, graph_id: str) -> ErasedCases:
    """Delete inside the caller's transaction; see :meth:`CaseStore.erase`."""
    cases = json_list(row[0] for row in connection.execute(_CASES, (tenant, graph_id)))
    outbox = connection.execute(_OUTBOX, (tenant, cases)).rowcount
    verdicts = connection.execute(_VERDICTS, (tenant, cases)).rowcount
    judgements = connection.execute(_JUDGEMENTS, (tenant, cases)).rowcount
    tasks = connection.execute(_TASKS, (tenant, graph_id)).rowcount
    connection.execute(_JUDGE_AGAIN, (tenant, cases))
    concerns = connection.execute(_CONCERNS, (tenant, graph_id)).rowcount
    return ErasedCases(tasks, concerns, verdicts, outbox, judgements)


def erase_tenant(connection: sqlite3.Connection, tenant: str) -> ErasedCases:
    """As :func:`erase_graph`, of everything that the tenant has."""
    connection.execute("DELETE FROM read_until WHERE tenant = ?", (tenant,))
    return ErasedCases(
        tasks=connection.execute("DELETE FROM task WHERE tenant = ?", (tenant,)).rowcount,
        concerns=connection.execute("DELETE FROM concern WHERE tenant = ?", (tenant,)).rowcount,
        verdicts=connection.execute("DELETE FROM verdict WHERE tenant = ?", (tenant,)).rowcount,
        outbox=connection.execute("DELETE FROM outbox WHERE tenant = ?", (tenant,)).rowcount,
        judgements=connection.execute("DELETE FROM judgement WHERE tenant = ?", (tenant,)).rowcount,
    )


_JUDGED_OUTBOX = (
    "DELETE FROM outbox WHERE (tenant, case_id, revision) IN (SELECT tenant, case_id, revision"
    " FROM verdict WHERE json_extract(body, '$.method') = ?)"
    " AND (tenant, case_id) NOT IN (SELECT tenant, case_id FROM judgement)"
)
_JUDGED = (
    "DELETE FROM verdict WHERE json_extract(body, '$.method') = ?"
    " AND (tenant, case_id) NOT IN (SELECT tenant, case_id FROM judgement)"
)


def forget_judged(connection: sqlite3.Connection, method: str) -> int:
    """Drop every tenant's queue, and the verdicts that a method found, with their deliveries; of
    a case that a person judged nothing, for that speaks of revisions."""
    for statement in ("DELETE FROM task", "DELETE FROM concern", "DELETE FROM read_until"):
        connection.execute(statement)
    connection.execute(_JUDGED_OUTBOX, (method,))
    return connection.execute(_JUDGED, (method,)).rowcount
