"""Erasing a graph or a tenant from the case store in PostgreSQL."""

from __future__ import annotations

from memtrace_collector.store.base import ErasedCases
from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.database import Connection, Database

# A verdict speaks of every graph that its case read from, so it goes with each of them.
_CASES = """
SELECT case_id FROM task WHERE tenant = %(tenant)s AND graph_id = %(graph_id)s
UNION SELECT case_id FROM concern WHERE tenant = %(tenant)s AND graph_key = %(graph_key)s
UNION SELECT case_id FROM verdict WHERE tenant = %(tenant)s AND graph_key = %(graph_key)s
"""
_LOCK = "SELECT FROM task WHERE tenant = %s AND case_id = ANY(%s) ORDER BY case_id FOR UPDATE"
_JUDGE_AGAIN = (
    "UPDATE task SET state = 'waiting', due_ns = 0, not_before_ns = 0, touched = 0, worker = '',"
    " leased_until_ns = 0, attempts = 0, last_error = '' WHERE tenant = %s AND case_id = ANY(%s)"
)
_CONCERNS = (
    "DELETE FROM concern c WHERE tenant = %(tenant)s AND (graph_key = %(graph_key)s OR NOT EXISTS"
    " (SELECT FROM task t WHERE t.tenant = c.tenant AND t.case_id = c.case_id))"
)


def erase(database: Database, tenant: bytes, graph_id: str | None) -> ErasedCases:
    """See :meth:`CaseStore.erase`."""

    def delete(connection: Connection) -> ErasedCases:
        if graph_id is None:
            return _erase_tenant(connection, tenant)
        return _erase_graph(connection, tenant, graph_id)

    erased = database.transaction(delete)
    with database.connection() as connection:
        connection.execute("VACUUM task, concern, verdict, judgement, outbox")
    return erased


def _erase_graph(connection: Connection, tenant: bytes, graph_id: str) -> ErasedCases:
    names = {
        "tenant": tenant,
        "graph_id": keys.name_bytes(graph_id),
        "graph_key": keys.wide_key(graph_id),
    }
    cases = [row[0] for row in connection.execute(_CASES, names)]
    about = (tenant, cases)
    connection.execute(_LOCK, about)
    outbox = connection.execute(
        "DELETE FROM outbox WHERE tenant = %s AND case_id = ANY(%s)", about
    ).rowcount
    verdicts = connection.execute(
        "DELETE FROM verdict WHERE tenant = %s AND case_id = ANY(%s)", about
    ).rowcount
    judgements = connection.execute(
        "DELETE FROM judgement WHERE tenant = %s AND case_id = ANY(%s)", about
    ).rowcount
    tasks = connection.execute(
        "DELETE FROM task WHERE tenant = %(tenant)s AND graph_id = %(graph_id)s", names
    ).rowcount
    connection.execute(_JUDGE_AGAIN, about)
    concerns = connection.execute(_CONCERNS, names).rowcount
    return ErasedCases(tasks, concerns, verdicts, outbox, judgements)


def _erase_tenant(connection: Connection, tenant: bytes) -> ErasedCases:
    name = (tenant,)
    connection.execute("DELETE FROM read_until WHERE tenant = %s", name)
    return ErasedCases(
        tasks=connection.execute("DELETE FROM task WHERE tenant = %s", name).rowcount,
        concerns=connection.execute("DELETE FROM concern WHERE tenant = %s", name).rowcount,
        verdicts=connection.execute("DELETE FROM verdict WHERE tenant = %s", name).rowcount,
        outbox=connection.execute("DELETE FROM outbox WHERE tenant = %s", name).rowcount,
        judgements=connection.execute("DELETE FROM judgement WHERE tenant = %s", name).rowcount,
    )
