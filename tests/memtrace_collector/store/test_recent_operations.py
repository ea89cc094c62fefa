"""What is kept of decoded operations is bounded, and never stands for what was replaced."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from memtrace_collector.graph.facts import Operation, SpanFacts
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store import recent
from memtrace_collector.store.recent import RecentOperations
from memtrace_collector.store.sqlite_facts import SqliteFactStore

FIRST = Operation(
    graph_id="user:1",
    trace_id="ab" * 16,
    span_id="cd" * 8,
    name="update_memory",
    step="update",
    start_ns=1,
    end_ns=2,
    outputs=("mem:1@a",),
    digest="1",
)
LATER = msgspec.structs.replace(FIRST, end_ns=3, name="replaced", digest="2")


def put(store: SqliteFactStore, operation: Operation, position: int) -> None:
    at = LogPosition(1, position)
    store.apply([(at, SpanFacts(operation=operation))], LogPosition(1, position + 1))


def test_what_was_asked_for_lately_outlasts_what_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "_OPERATIONS", 4)
    kept = RecentOperations()
    for row in range(40):
        kept.put(row, FIRST, 100)
        kept.get(0)
    assert kept.get(0) is FIRST
    assert sum(kept.get(row) is not None for row in range(1, 40)) <= 8
    kept.clear()
    assert kept.get(0) is None


def test_a_large_operation_is_not_kept() -> None:
    kept = RecentOperations()
    kept.put(1, FIRST, 1 << 20)
    assert kept.get(1) is None


def test_an_operation_that_was_read_is_not_given_once_another_took_its_place(
    tmp_path: Path,
) -> None:
    store = SqliteFactStore(tmp_path / "facts.sqlite3")
    reader = SqliteFactStore(tmp_path / "facts.sqlite3", writable=False)
    put(store, FIRST, 1)
    assert reader.producers("user:1", ["mem:1@a"])["mem:1@a"] == [FIRST]
    put(store, LATER, 2)
    assert reader.producers("user:1", ["mem:1@a"])["mem:1@a"] == [LATER]
    assert reader.operations("user:1", [FIRST.key]) == {FIRST.key: LATER}
    assert reader.trace_operations(FIRST.trace_id) == [LATER]
    store.erase("user:1")
    assert not reader.producers("user:1", ["mem:1@a"])
    assert not reader.trace_operations(FIRST.trace_id)
    put(store, FIRST, 3)
    assert reader.producers("user:1", ["mem:1@a"])["mem:1@a"] == [FIRST]
    reader.close()
    store.close()


def test_an_operation_that_was_read_is_given_to_its_tenant_and_its_graph_alone(
    tmp_path: Path,
) -> None:
    store = SqliteFactStore(tmp_path / "facts.sqlite3")
    put(store, FIRST, 1)
    assert store.operations("user:1", [FIRST.key]) == {FIRST.key: FIRST}
    other = store.for_tenant("other")
    assert not other.operations("user:1", [FIRST.key])
    assert not other.producers("user:1", ["mem:1@a"])
    assert not other.trace_operations(FIRST.trace_id)
    assert not store.operations("user:2", [FIRST.key])
    assert not store.producers("user:2", ["mem:1@a"])
    store.close()
