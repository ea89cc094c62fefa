"""A command without an owner projects by itself, and leaves the store as `up` would."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.config import Config
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.projecting import TIDY_SECONDS
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_collector.store.user_index import INDEXED_FROM
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.memtrace_collector.processor.spans import memory_span, request


def write(data: DataFolder, first: int, last: int) -> None:
    spans = [
        memory_span(trace, 1, "update", inputs=["mem:m/0@a"], outputs=[f"mem:m/{trace}@a"])
        for trace in range(first, last)
    ]
    data.append(request(*spans).SerializeToString(), "traces")


def unindexed(data: DataFolder) -> int:
    assert isinstance(data.facts, SqliteFactStore)
    rows = data.facts._connections.query("SELECT sum(unindexed) FROM graph")
    return int(rows.fetchone()[0])


def test_the_first_question_finds_a_long_graph_indexed(tmp_path: Path) -> None:
    with closing(DataFolder(tmp_path, Config(store=str(tmp_path)), NULL_METRICS)) as data:
        write(data, 1, INDEXED_FROM + 100)
        data.project()
        assert unindexed(data) == 0
        write(data, INDEXED_FROM + 100, INDEXED_FROM + 200)
        data.project()
        assert unindexed(data) == 100, "a short tail is read as fast without an index"


def test_tidying_is_bounded_and_asked_for_only_after_something_was_projected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def tidy(store: SqliteFactStore, seconds: float) -> bool:
        given.append(seconds)
        return True

    monkeypatch.setattr(SqliteFactStore, "tidy", tidy)
    with closing(DataFolder(tmp_path, Config(store=str(tmp_path)), NULL_METRICS)) as data:
        data.project()
        assert given == []
        write(data, 1, 3)
        data.project()
        data.project()
    assert len(given) == 1 and 0 < given[0] <= TIDY_SECONDS
