"""What is particular to files: they last, they roll back, and they are not mistaken."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.errors import DamagedError, WrongUseError
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store import cases_schema, facts_schema, schema
from memtrace_collector.store.base import Change, ErasedCases, OutboxEntry
from memtrace_collector.store.queue import QueuedCase
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.graph.build import GRAPH, facts, operation

ADDED = operation("t1/create", "create", 1, outputs=["mem:s:1@a"])
AT = LogPosition(1, 0)


def test_facts_and_cursor_last_beyond_the_process(tmp_path: Path) -> None:
    store = SqliteFactStore(tmp_path / "facts.db")
    store.apply([(AT, item) for item in facts(ADDED, values={"mem:s:1@a": "tea"})], AT)
    before = store.graph_hash(GRAPH)
    store.close()
    again = SqliteFactStore(tmp_path / "facts.db")
    assert again.graph_hash(GRAPH) == before and again.cursor() == AT
    again.close()


def test_a_batch_that_fails_leaves_nothing_not_even_its_graph(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[LogPosition, SpanFacts]]:
        yield AT, SpanFacts(operation=ADDED)
        raise RuntimeError("while reading")

    store = SqliteFactStore(tmp_path / "facts.db")
    with pytest.raises(RuntimeError, match="while reading"):
        store.apply(failing(), LogPosition(9, 9))
    assert store.graphs() == [] and store.cursor() == START
    store.apply([(AT, SpanFacts(operation=ADDED))], AT)
    assert store.operations(GRAPH, [ADDED.key]) == {ADDED.key: ADDED}
    store.close()


def test_a_kill_in_the_middle_of_a_batch_loses_only_that_batch(tmp_path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_collector.graph.facts import SpanFacts
from tests.memtrace_collector.graph.build import operation
store = SqliteFactStore(Path(sys.argv[1]))
def batch(start, die):
    for n in range(start, start + 50):
        if die and n == start + 40:
            os.kill(os.getpid(), 9)
        yield LogPosition(1, n), SpanFacts(operation=operation(f"t{n}/w", "create", n))
store.apply(batch(0, False), LogPosition(1, 50))
store.apply(batch(50, True), LogPosition(1, 100))
"""
    root = Path(__file__).parents[3]
    path = tmp_path / "facts.db"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        cwd=root,
        env={"PYTHONPATH": f"{root}:{root / 'collector'}"},
        check=False,
    )
    assert done.returncode == -9
    store = SqliteFactStore(path)
    assert store.cursor() == LogPosition(1, 50) and store.graphs()[0].operations == 50
    store.close()


def test_a_file_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    SqliteFactStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(WrongUseError, match="version 99"):
        SqliteFactStore(path)


def test_a_case_file_of_the_first_release_keeps_its_verdicts_and_outbox(tmp_path: Path) -> None:
    path = tmp_path / "cases.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, cases_schema.CASES[:1], path.name)
        body = '{"id": "c", "stage": "update", "error_type": "overwritten", "method": "rules"}'
        connection.execute("INSERT INTO verdict VALUES ('c', 1, 'g', '2026', ?)", (body,))
        connection.execute("INSERT INTO lease VALUES ('c', 'somebody', 5)")
    with closing(SqliteCaseStore(path)) as store:
        assert [each["id"] for each in store.verdicts()] == ["c"]
        assert store.verdict_counts() == {("update", "overwritten", "rules"): 1}
        assert store.queued() == [] and store.read_until() is None


def test_a_case_file_of_one_tenant_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "cases.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, cases_schema.CASES[:3], path.name)
        connection.executescript(
            "INSERT INTO task(case_id, trace_id, span_id, graph_id, answered_ns, response_id,"
            " conversation_id, state, since_ns, due_ns, attempts)"
            " VALUES ('c', 'aa', 'bb', 'g', 7, '', '', 'waiting', 1, 2, 1);"
            "INSERT INTO concern VALUES ('g', 'c');"
            "INSERT INTO verdict VALUES ('c', 1, 'g', '2026', '{}');"
            "INSERT INTO outbox(id, case_id, revision, signal, payload, attempts, last_error)"
            " VALUES ('z', 'c', 1, 'logs', x'00', 3, '503'), ('a', 'c', 1, 'traces', x'01', 0, '');"
            "INSERT INTO read_until VALUES (0, 5, 7);"
        )
    with closing(SqliteCaseStore(path)) as store:
        assert store.tenants() == ["default"] and store.read_until() == Change(5, 7)
        assert store.queued() == [QueuedCase("c", "aa", "bb", "g", 7)]
        (lease,) = store.take("worker", now_ns=2, lease_ns=10)
        assert (lease.attempts, lease.since_ns) == (2, 1)
        tried, fresh = store.outbox_due(0)
        assert (tried.id, tried.attempts, tried.last_error) == ("z", 3, "503")
        assert (fresh.id, fresh.payload, fresh.destination) == ("a", b"\x01", "default")
        assert store.erase("g") == ErasedCases(tasks=1, concerns=1, verdicts=1, outbox=2)


def test_nothing_of_an_erased_graph_stays_in_the_files(tmp_path: Path) -> None:
    secret = "The cat is called Schnurri"
    with closing(SqliteCaseStore(tmp_path / "cases.db")) as store:
        for case_id, graph_id in (("c", "gone"), ("d", "kept")):
            body: dict[str, object] = {
                "id": case_id,
                "revision": 1,
                "graph_id": graph_id,
                "created": "2026",
                "explanation": f"{secret} {graph_id} " * 400,
            }
            store.save_verdict(body, [])
        store.erase("gone")
        files = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert f"{secret} kept".encode() in files and f"{secret} gone".encode() not in files


def test_a_delivered_payload_is_in_no_file_once_it_was_dropped(tmp_path: Path) -> None:
    path = tmp_path / "cases.db"
    with closing(SqliteCaseStore(path)) as store:
        for name in ("old", "new"):
            payload = f"payload {name} ".encode() * 400
            row = OutboxEntry(id=name, case_id="c", revision=1, signal="traces", payload=payload)
            store.enqueue([row])
        store.outbox_delivered("old", 1)
        store.outbox_delivered("new", 3)
        assert store.outbox_forget(2) == 1
    assert b"payload old" not in path.read_bytes() and b"payload new" in path.read_bytes()


def test_a_fact_file_of_the_first_release_is_projected_anew(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, facts_schema.FACTS[:1], path.name)
        connection.execute("INSERT INTO cursor VALUES ('projection', 1, 99)")
        connection.execute("INSERT INTO cursor VALUES ('forward:default', 1, 50)")
        connection.execute("INSERT INTO flag VALUES ('default', 'o', 'g', 1, x'00')")
    with closing(SqliteFactStore(path)) as store:
        assert store.cursor() == START and store.flags() == []
        assert store.cursor("forward:default") == LogPosition(1, 50)


def test_a_file_that_is_no_database_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "cases.db"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(DamagedError, match="not a readable SQLite database"):
        SqliteCaseStore(path)


@pytest.mark.fault("F10")
def test_readers_go_on_while_a_batch_is_written(tmp_path: Path) -> None:
    store = SqliteFactStore(tmp_path / "facts.db")
    store.apply([(AT, SpanFacts(operation=ADDED))], AT)
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[tuple[LogPosition, SpanFacts]]:
        yield AT, SpanFacts(operation=operation("t2/w", "create", 2))
        inside.set()
        go_on.wait(10)

    writer = threading.Thread(target=lambda: store.apply(slow(), AT))
    writer.start()
    assert inside.wait(10)
    assert store.graphs()[0].operations == 1
    go_on.set()
    writer.join()
    assert store.graphs()[0].operations == 2
    store.close()


def test_two_processes_worth_of_case_stores_share_one_file(tmp_path: Path) -> None:
    one, two = (SqliteCaseStore(tmp_path / "cases.db") for _ in range(2))
    one.announce([QueuedCase("c", graph_id="g")], (), None, now_ns=0)
    assert one.take("one", now_ns=0, lease_ns=10)
    assert not two.take("two", now_ns=5, lease_ns=10)
    one.close()
    two.close()


def test_thousands_of_keys_are_asked_for_at_once(tmp_path: Path) -> None:
    store = SqliteFactStore(tmp_path / "facts.db")
    many = [operation(f"t{n}/w", "create", n, outputs=[f"mem:s:{n}@a"]) for n in range(3000)]
    store.apply([(AT, SpanFacts(operation=item)) for item in many], AT)
    refs = [f"mem:s:{n}@a" for n in range(3000)]
    assert len(store.producers(GRAPH, refs)) == 3000
    assert len(store.record_writers(GRAPH, [ref[:-2] for ref in refs])) == 3000
    store.close()


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    store = SqliteFactStore(tmp_path / "facts.db")
    store.close()
    store.close()


def test_a_thread_that_ends_leaves_no_connection_open(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    with closing(SqliteFactStore(path)) as store:
        store.graphs()
        before = _open_files(path)
        for _ in range(10):
            thread = threading.Thread(target=store.graphs)
            thread.start()
            thread.join()
        assert _open_files(path) <= before + 1


def _open_files(path: Path) -> int:
    links = (link for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return sum(os.readlink(link) == str(path) for link in links)
