"""Facts made anew from the log are those that were there, whatever the log no longer holds."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.config import Config
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read, segment_numbers, segment_path
from memtrace_collector.log.retention import Limits, LogRetention, Readers
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime import exchange
from memtrace_collector.runtime.exchange import NEW_FOLDER, OLD_FOLDER, finish_exchange
from memtrace_collector.runtime.rebuilding import Rebuilt, rebuild
from memtrace_collector.settings.retention import RetentionConfig
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.processor.spans import memory_span, request

VECTORS = sorted((Path(__file__).parents[2] / "contract" / "vectors").glob("*.otlp.json"))
GRAPHS = ("user:a", "user:b")


def config(folder: Path) -> Config:
    return Config(store=str(folder))


def body(number: int, text: str = "said", end_shift: int = 0) -> bytes:
    graph, ref = GRAPHS[number % 2], f"msg:{number}@a"
    span = memory_span(number, 1, "ingest", graph=graph, outputs=[ref], values={ref: text * 9})
    span.end_time_unix_nano += end_shift
    return bytes(request(span).SerializeToString())


def fill(folder: Path, bodies: list[tuple[str, Any, bytes]]) -> None:
    """Append (tenant, encoding, body), each a segment, and project them."""
    log = SegmentLog(folder / "log", segment_bytes=1, fsync=False)
    with contextlib.closing(log):
        for tenant, encoding, content in bodies:
            log.append(LogRecord(tenant, 1, "traces", encoding, content)).result(20)
        with facts(folder) as store:
            Projector(folder / "log", store, RecordReader()).run_once()


def numbered(count: int) -> list[tuple[str, Any, bytes]]:
    return [("default", "protobuf", body(number)) for number in range(1, count + 1)]


@contextlib.contextmanager
def facts(folder: Path) -> Iterator[SqliteFactStore]:
    folder.mkdir(exist_ok=True)
    with contextlib.closing(SqliteFactStore(folder / "facts.db")) as store:
        yield store


def hashes(folder: Path) -> dict[tuple[str, str], str]:
    with facts(folder) as store:
        return {
            (tenant, item.graph_id): store.for_tenant(tenant).graph_hash(item.graph_id)
            for tenant in store.tenants()
            for item in store.for_tenant(tenant).graphs()
        }


def rebuilt(folder: Path, **options: Any) -> Rebuilt:
    return rebuild(folder, config(folder), lambda what, position: None, **options)


def expire(folder: Path, segments: int) -> None:
    log = SegmentLog(folder / "log", fsync=False)
    with contextlib.closing(log), facts(folder) as store:
        size = sum(
            segment_path(folder / "log", number).stat().st_size
            for number in segment_numbers(folder / "log")[segments:-1]
        )
        LogRetention(
            folder / "log",
            Limits(size=size),
            end=lambda: log.end,
            readers=lambda: Readers(store.cursor()),
        ).run_once()
    assert segment_numbers(folder / "log")[0] == segments + 1


@pytest.mark.fault("F29")
def test_the_contract_vectors_of_two_tenants_give_the_same_hashes(tmp_path: Path) -> None:
    bodies = [
        (tenant, "json", path.read_bytes()) for path in VECTORS for tenant in ("default", "other")
    ]
    fill(tmp_path, bodies)
    before = hashes(tmp_path)
    result = rebuilt(tmp_path)
    assert result.is_equal
    assert len(before) == result.graphs > len(VECTORS)
    assert hashes(tmp_path) == before
    assert not (tmp_path / OLD_FOLDER).exists()
    assert not (tmp_path / NEW_FOLDER).exists()


@pytest.mark.fault("F29", "F14")
def test_duplicates_and_conflicts_give_the_same_hashes(tmp_path: Path) -> None:
    conflicting = [
        ("default", "protobuf", body(2, "earlier", -1)),
        ("default", "protobuf", body(3, "later", +7)),
    ]
    fill(tmp_path, [*numbered(5), *numbered(3), *conflicting])
    before = hashes(tmp_path)
    assert rebuilt(tmp_path).is_equal
    assert hashes(tmp_path) == before


@pytest.mark.fault("F29", "F27")
@pytest.mark.parametrize("segments", [1, 4, 7])
def test_what_retention_took_is_carried_over(tmp_path: Path, segments: int) -> None:
    again = [("default", "protobuf", body(1, "won later", 5)), *numbered(2)]
    fill(tmp_path, [*numbered(6), *again])
    before = hashes(tmp_path)
    with facts(tmp_path) as store:
        keys = [operation.key for graph in GRAPHS for operation in store.all_operations(graph)]
        places = store.first_position(keys)
    expire(tmp_path, segments)
    result = rebuilt(tmp_path)
    assert result.is_equal
    assert result.carried_over == min(segments, 6)
    assert hashes(tmp_path) == before
    with facts(tmp_path) as store:
        assert store.first_position(keys) == places, "only a first copy is ever sent on"


@pytest.mark.fault("F29")
def test_a_backlog_is_projected_before_the_stores_are_compared(tmp_path: Path) -> None:
    fill(tmp_path, numbered(3))
    with contextlib.closing(SegmentLog(tmp_path / "log", fsync=False)) as log:
        log.append(LogRecord("default", 1, "traces", "protobuf", body(8))).result(20)
    assert rebuilt(tmp_path).is_equal
    with facts(tmp_path) as store:
        assert sum(item.operations for item in store.graphs()) == 4


@pytest.mark.fault("F29")
def test_values_that_have_had_their_time_do_not_come_back(tmp_path: Path) -> None:
    fill(tmp_path, numbered(3))
    with facts(tmp_path) as store:
        assert store.expire_values(2**62) == 3
    before = hashes(tmp_path)
    settings = Config(store=str(tmp_path), retention=RetentionConfig(values_days=1.0))
    assert rebuild(tmp_path, settings, lambda what, position: None).is_equal
    assert hashes(tmp_path) == before


@pytest.mark.fault("F29", "F6")
def test_what_stands_in_a_damaged_record_is_carried_over(tmp_path: Path) -> None:
    fill(tmp_path, numbered(4))
    before = hashes(tmp_path)
    path = segment_path(tmp_path / "log", 2)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    result = rebuilt(tmp_path)
    assert (result.is_equal, result.carried_over) == (True, 1)
    assert hashes(tmp_path) == before


def test_a_wrong_fact_in_the_live_store_is_found_and_only_reported_by_a_check(
    tmp_path: Path,
) -> None:
    fill(tmp_path, numbered(4))
    before = hashes(tmp_path)
    foreign = tmp_path / "foreign"
    with contextlib.closing(SegmentLog(foreign, fsync=False)) as log:
        log.append(LogRecord("default", 1, "traces", "protobuf", body(9))).result(20)
    with facts(tmp_path) as store:
        end = store.cursor()
        store.set_cursor("projection", START)
        Projector(foreign, store, RecordReader()).run_once()
        store.set_cursor("projection", end)
    spoiled = hashes(tmp_path)
    result = rebuilt(tmp_path, swap=False)
    assert result.differing == ["user:b"]
    assert hashes(tmp_path) == spoiled
    assert rebuilt(tmp_path).differing == ["user:b"]
    assert hashes(tmp_path) == before
    assert hashes(tmp_path / OLD_FOLDER) == spoiled


@pytest.mark.fault("F6")
@pytest.mark.parametrize("damage", ["empty", "garbage", "missing"])
def test_a_damaged_live_store_is_reported_and_replaced(tmp_path: Path, damage: str) -> None:
    fill(tmp_path, numbered(4))
    before = hashes(tmp_path)
    path = tmp_path / "facts.db"
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "empty" else b"no database at all" * 500)
    result = rebuilt(tmp_path)
    assert not result.is_equal
    assert hashes(tmp_path) == before


@pytest.mark.fault("F6", "F27")
def test_what_neither_the_log_nor_a_damaged_store_has_is_counted(tmp_path: Path) -> None:
    fill(tmp_path, numbered(5))
    expire(tmp_path, 2)
    (tmp_path / "facts.db").write_bytes(b"no database at all" * 500)
    result = rebuilt(tmp_path)
    assert result.lost_segments == 2
    assert result.operations == 3
    assert "facts.db" in result.old_damage


@pytest.mark.fault("F1")
@pytest.mark.parametrize("name", ["replace", "unlink", "fsync"])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_an_exchange_that_was_killed_is_finished_or_never_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    fill(tmp_path, numbered(4))
    before = hashes(tmp_path)
    real, calls = getattr(os, name), []

    def dying(*args: Any, **named: Any) -> Any:
        calls.append(name)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(*args, **named)

    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr(exchange.os, name, dying)
        rebuilt(tmp_path)
    finish_exchange(tmp_path)
    assert hashes(tmp_path) == before


def test_changes_are_announced_anew(tmp_path: Path) -> None:
    fill(tmp_path, numbered(3))
    with facts(tmp_path) as store:
        until = store.changes(None).until
        assert store.changes(until).graph_ids == ()
    rebuilt(tmp_path)
    with facts(tmp_path) as store:
        assert set(store.changes(until).graph_ids) == set(GRAPHS)


def test_the_projection_goes_on_behind_what_was_rebuilt(tmp_path: Path) -> None:
    fill(tmp_path, numbered(3))
    rebuilt(tmp_path)
    with facts(tmp_path) as store:
        last = list(read(tmp_path / "log", START))[-1]
        assert store.cursor() == last.next
        assert Projector(tmp_path / "log", store, RecordReader()).run_once() == 0
