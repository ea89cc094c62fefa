"""What a dashboard may read in PostgreSQL: current verdicts, of the tenants of its role."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.rows import dict_row

from memtrace_collector.store.base import OutboxEntry
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from memtrace_collector.store.postgres.cases_schema import CASES
from memtrace_collector.store.postgres.database import Database
from tests.postgres import Cluster

Read = Callable[[str], list[dict[str, Any]]]
VIEWS = ("failure", "hop", "hop_edge", "delivery")
_roles = itertools.count()


def hop(number: int, kind: str, *versions: str, decisive: bool = False) -> dict[str, Any]:
    return {
        "kind": kind,
        "outcome": "changed" if decisive else "kept",
        "span": {"traceId": "a" * 32, "spanId": f"{number:016x}"},
        "service": f"service-{number}",
        "system": "mem0",
        "operation": f"operation-{number}",
        "time_ns": 1_763_700_000_000_000_000 + number,
        "record": "mem:mem0:r",
        "versions": list(versions),
        "says": "",
        "decisive": decisive,
    }


def verdict(case_id: str = "c1", revision: int = 1, **changed: Any) -> dict[str, Any]:
    said = {
        "id": case_id,
        "revision": revision,
        "created": "2026-11-21T10:00:00.250Z",
        "graph_id": "user:ann",
        "answer": {"traceId": "b" * 32, "spanId": f"{3:016x}"},
        "stage": "update",
        "error_type": "overwritten",
        "decisive": [{"traceId": "a" * 32, "spanId": f"{2:016x}"}],
        "score": 0.93,
        "method": "rules",
        "explanation": "it was overwritten",
        "lineage": "complete",
        "absence": "proven",
        "case_trace": "d" * 32,
        "path": [
            hop(1, "evidence", "msg:m@1"),
            hop(2, "write", "mem:mem0:r@2", decisive=True),
            hop(3, "answer", "msg:m@1"),
        ],
    }
    return said | changed


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresCaseStore]:
    store = PostgresCaseStore(postgres_url)
    yield store
    store.close()


@pytest.fixture
def reader_of(
    postgres_url: str, postgres_cluster: Cluster, store: PostgresCaseStore
) -> Iterator[Callable[..., Read]]:
    """A new role that reads what it is allowed to."""
    with ExitStack() as opened:

        def make(*allowed: str) -> Read:
            role = f"reader_{next(_roles)}"
            with psycopg.connect(postgres_url, autocommit=True) as owner:
                owner.execute(f"CREATE ROLE {role} LOGIN")
                for arguments in allowed:
                    owner.execute(f"SELECT memtrace_report.allow('{role}'{arguments})")
            url = postgres_url.replace("//test@", f"//{role}@")
            reader = opened.enter_context(
                psycopg.connect(url, autocommit=True, row_factory=dict_row)
            )
            return lambda statement: reader.execute(statement).fetchall()

        yield make


@pytest.fixture
def read(reader_of: Callable[..., Read]) -> Read:
    return reader_of("")


def test_a_failure_names_answer_decisive_operation_and_case(
    store: PostgresCaseStore, read: Read
) -> None:
    store.save_verdict(verdict(), ())
    (row,) = read("SELECT *, created::text, decisive_time::text FROM memtrace_report.failure")
    assert row == {
        "tenant": "default", "case_id": "c1", "revision": 1,
        "created": "2026-11-21 10:00:00.25+00", "stage": "update", "error_type": "overwritten",
        "is_memory_fault": True, "method": "rules", "score": 0.93, "graph_id": "user:ann",
        "answer_trace": "b" * 32, "answer_span": f"{3:016x}", "answer_service": "service-3",
        "decisive_trace": "a" * 32, "decisive_span": f"{2:016x}",
        "decisive_service": "service-2", "decisive_operation": "operation-2",
        "decisive_system": "mem0", "decisive_time": "2025-11-21 04:40:00+00",
        "lineage": "complete", "absence": "proven", "explanation": "it was overwritten",
        "case_trace": "d" * 32,
    }  # fmt: skip


def test_only_the_newest_revision_of_a_case_is_current(
    store: PostgresCaseStore, read: Read
) -> None:
    for revision in (1, 2, 3):
        store.save_verdict(verdict(revision=revision, path=[hop(revision, "answer")]), ())
    for view in ("failure", "hop"):
        assert [r["revision"] for r in read(f"SELECT revision FROM memtrace_report.{view}")] == [3]


def test_the_path_is_a_graph_of_hops_and_what_they_carry(
    store: PostgresCaseStore, read: Read
) -> None:
    store.save_verdict(verdict(), ())
    hops = read("SELECT position, kind, outcome, is_decisive FROM memtrace_report.hop")
    assert [tuple(row.values()) for row in hops] == [
        (1, "evidence", "kept", False),
        (2, "write", "changed", True),
        (3, "answer", "kept", False),
    ]
    edges = read("SELECT source, target, carries FROM memtrace_report.hop_edge ORDER BY target")
    assert [tuple(row.values()) for row in edges] == [(1, 2, None), (1, 3, "msg:m@1")]


def test_a_nul_in_a_verdict_is_shown_as_a_replacement(store: PostgresCaseStore, read: Read) -> None:
    said = "ends \x00\x00, escaped \\u0000, both \\\x00"
    store.save_verdict(verdict(explanation=said, graph_id="user:\x00"), ())
    (row,) = read("SELECT explanation, graph_id FROM memtrace_report.failure")
    assert row == {"explanation": said.replace("\x00", "\ufffd"), "graph_id": "user:\ufffd"}


@pytest.mark.parametrize(
    "changed",
    [
        {"path": "none", "decisive": {}, "answer": 7, "score": "high"},
        {"path": [1, None, [], {"versions": {}, "time_ns": 10**400, "decisive": "yes"}]},
        {"score": float("nan")},
        {"score": 10**400, "created": "2026-99-99T00:00:00Z"},
        {"explanation": {"deep": "x"}, "created": "yesterday"},
    ],
)
def test_what_cannot_be_read_is_null_and_keeps_nobody_from_storing_it(
    store: PostgresCaseStore, read: Read, changed: dict[str, Any]
) -> None:
    assert store.save_verdict(verdict(**changed), ())
    (row,) = read("SELECT * FROM memtrace_report.failure")
    assert (row["case_id"], row["stage"]) == ("c1", "update")
    for view in VIEWS:
        read(f"SELECT * FROM memtrace_report.{view}")


def test_the_body_of_a_verdict_may_be_no_json_at_all(
    store: PostgresCaseStore, read: Read, postgres_url: str
) -> None:
    store.save_verdict(verdict(), ())
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        for body in (rb"\x00ff", b"[[", b"[" * 50_000, b"7"):
            owner.execute("UPDATE memtrace.verdict SET body = %s", (body,))
            (row,) = read("SELECT score, explanation FROM memtrace_report.failure")
            assert row == {"score": None, "explanation": None}
            assert read("SELECT * FROM memtrace_report.hop") == []


def test_a_role_reads_the_views_and_nothing_else(read: Read) -> None:
    for view in VIEWS:
        read(f"SELECT * FROM memtrace_report.{view}")
    for table in (
        "memtrace.verdict", "memtrace.task", "memtrace.outbox", "memtrace.reported_verdict",
        "memtrace.reported_delivery", "memtrace_report.reader",
    ):  # fmt: skip
        with pytest.raises(errors.InsufficientPrivilege):
            read(f"SELECT * FROM {table}")
    with pytest.raises(errors.InsufficientPrivilege):
        read("INSERT INTO memtrace_report.reader VALUES (current_user, NULL)")
    with pytest.raises(errors.InsufficientPrivilege):
        read("SELECT memtrace_report.allow(current_user)")


def test_a_role_sees_the_tenants_that_it_was_given(
    store: PostgresCaseStore, reader_of: Callable[..., Read]
) -> None:
    entry = OutboxEntry(id="x", case_id="c1", revision=1, signal="traces", payload=b"p")
    for name in ("acme", "bolt"):
        store.for_tenant(name).save_verdict(verdict(), [entry])
    seen = {
        "everyone": reader_of(""),
        "acme": reader_of("", ", '{acme}'"),
        "nobody": reader_of(", '{}'"),
    }
    expected = {"everyone": ["acme", "bolt"], "acme": ["acme"], "nobody": []}
    for who, tenants in expected.items():
        for view in VIEWS:
            rows = seen[who](f"SELECT DISTINCT tenant FROM memtrace_report.{view} ORDER BY 1")
            assert [row["tenant"] for row in rows] == tenants, (who, view)
    with pytest.raises(errors.InsufficientPrivilege):
        reader_of()("SELECT * FROM memtrace_report.failure")


def test_a_role_of_the_known_name_is_let_in_when_the_views_are_made() -> None:
    cluster = Cluster()
    try:
        cluster.execute("CREATE ROLE memtrace_reader LOGIN")
        url = cluster.new_database()
        Database(url, CASES).close()
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(
                "INSERT INTO memtrace.verdict VALUES"
                " ('acme', 'c', 1, '', '2026-11-21T10:00:00.250Z', 'update', 'overwritten',"
                " 'rules', '{\"score\": 0.5}')"
            )
        PostgresCaseStore(url).close()
        with psycopg.connect(url.replace("//test@", "//memtrace_reader@")) as reader:
            found = reader.execute("SELECT tenant, score FROM memtrace_report.failure").fetchall()
        assert found == [("acme", 0.5)], "also what was stored before the views were made"
    finally:
        cluster.close()


def test_what_is_erased_is_gone_from_the_views(store: PostgresCaseStore, read: Read) -> None:
    store.save_verdict(verdict(), ())
    store.erase("user:ann")
    assert [read(f"SELECT * FROM memtrace_report.{view}") for view in VIEWS] == [[]] * 4
