"""Retention in a data folder: the log by age and size, values by age, the graphs stay."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.config import Config
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import segment_numbers
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.runtime import keeping
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.keeping import log_retention
from memtrace_collector.runtime.rebuilding import rebuild
from memtrace_collector.runtime.upkeep import EXPIRY_SECONDS, StoreUpkeep
from memtrace_collector.settings.retention import RetentionConfig
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.memtrace_collector.processor.spans import memory_span, request

GRAPH = "user:kept"
CURSOR = "forward:default"
DAY_NS = 86_400 * 1_000_000_000


def config(folder: Path, **retention: Any) -> Config:
    return Config(store=str(folder), retention=RetentionConfig(**retention))


def fill(folder: Path, count: int) -> None:
    with contextlib.closing(SegmentLog(folder / "log", segment_bytes=1, fsync=False)) as log:
        for number in range(1, count + 1):
            ref = f"msg:{number}@a"
            span = memory_span(
                number, 1, "ingest", graph=GRAPH, outputs=[ref], values={ref: f"said {number}"}
            )
            body = request(span).SerializeToString()
            log.append(LogRecord("default", 1, "traces", "protobuf", body)).result(20)


@pytest.mark.fault("F27")
def test_the_log_shrinks_to_its_bound_and_the_graph_stays(tmp_path: Path) -> None:
    fill(tmp_path, 6)
    settings = config(tmp_path, log_bytes=1)
    with contextlib.closing(DataFolder(tmp_path, settings, NULL_METRICS)) as data:
        retention = log_retention(data, settings, NULL_METRICS, CURSOR)
        assert retention.run_once() == 0, "nothing is projected yet"
        data.project()
        live = data.facts.graph_hash(GRAPH)
        data.cases.set_cursor(CURSOR, START)
        assert retention.run_once() == 5, "the bound wins over a destination that takes nothing"
        assert segment_numbers(tmp_path / "log") == [6]
        assert data.facts.graph_hash(GRAPH) == live
    assert rebuild(tmp_path, settings, lambda what, position: None).is_equal


def test_by_age_nothing_goes_that_the_destination_has_not_taken(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    settings = config(tmp_path, log_days=1e-9)
    with contextlib.closing(DataFolder(tmp_path, settings, NULL_METRICS)) as data:
        data.project()
        data.cases.set_cursor(CURSOR, START)
        assert log_retention(data, settings, NULL_METRICS, CURSOR).run_once() == 0
        assert log_retention(data, settings, NULL_METRICS, None).run_once() == 2


@pytest.mark.fault("F5")
def test_facts_are_synced_before_the_log_they_came_from_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 3)
    settings = config(tmp_path, log_bytes=1)
    synced: list[list[int]] = []
    monkeypatch.setattr(
        keeping, "sync_facts", lambda folder: synced.append(segment_numbers(folder / "log"))
    )
    with contextlib.closing(DataFolder(tmp_path, settings, NULL_METRICS)) as data:
        data.project()
        log_retention(data, settings, NULL_METRICS, None).run_once()
    assert synced == [[1, 2, 3]]
    assert segment_numbers(tmp_path / "log") == [3]


def test_values_expire_by_their_age_now_and_then(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    settings = config(tmp_path)
    with contextlib.closing(DataFolder(tmp_path, settings, NULL_METRICS)) as data:
        data.project()
        operations = list(data.facts.all_operations(GRAPH))
    refs = [ref for operation in operations for ref in operation.outputs]
    starts = sorted(operation.start_ns for operation in operations)
    timer = [0.0]
    with contextlib.closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        upkeep = StoreUpkeep(
            store, 1.0, clock_ns=lambda: starts[1] + DAY_NS, timer=lambda: timer[0]
        )
        assert len(store.values(GRAPH, refs)) == 3
        upkeep(False)
        assert len(store.values(GRAPH, refs)) == 2
        assert len(list(store.all_operations(GRAPH))) == 3
        upkeep = StoreUpkeep(store, 1.0, clock_ns=time.time_ns, timer=lambda: timer[0])
        upkeep(False)
        upkeep(False)
        timer[0] += EXPIRY_SECONDS
        upkeep(False)
        assert store.values(GRAPH, refs) == {}


def test_what_was_put_off_is_done_only_when_there_is_nothing_else_to_do() -> None:
    class Store:
        tidied = 0

        def expire_values(self, before_ns: int) -> int:
            raise AssertionError("values are kept for ever")

        def tidy(self, seconds: float) -> bool:
            self.tidied += 1
            return self.tidied < 3

    store = Store()
    upkeep = StoreUpkeep(store)
    assert not upkeep(False)
    assert [upkeep(True) for _ in range(3)] == [True, True, False]
    assert store.tidied == 3
