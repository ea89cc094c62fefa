"""A real child process that projects a real log."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.config import Config, load
from memtrace_collector.errors import DamagedError, StoreInUseError
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime import fact_writer
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.fact_writer import FactWriter
from memtrace_collector.runtime.projecting import Apart
from memtrace_collector.runtime.stores import FACTS_FILE
from memtrace_collector.runtime.tally import Tally
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.memtrace_collector.processor.spans import memory_span, request
from tests.memtrace_collector.running import (
    VECTORS,
    children,
    eventually,
    is_running,
    start_up,
)

SECRET = "s3cret-of-the-operator"


class Folder:
    """A data folder whose log a child projects, and what it counted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tally = Tally()
        self.counts: Counter[str] = Counter()
        self.data = DataFolder(path, Config(store=str(path)), self.tally, Apart)
        assert isinstance(self.data.projection, Apart)
        self.projection = self.data.projection

    def write(self, *traces: int) -> None:
        for trace in traces:
            span = memory_span(trace, 1, "ingest", outputs=[f"msg:m/{trace}@a"])
            self.data.append(request(span).SerializeToString(), "traces")

    def operations(self) -> int:
        return sum(graph.operations for graph in self.data.facts.graphs())

    def counted(self, name: str) -> int:
        for count in self.tally.take()[0]:
            self.counts[count.name] += count.value
        return self.counts[name]

    def pid(self) -> int:
        pid = self.projection.pid
        assert pid is not None
        return pid


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    opened = Folder(tmp_path / "store")
    yield opened
    opened.projection.stop(5.0)
    opened.data.close()


def test_what_is_on_disk_is_projected_by_the_child(folder: Folder) -> None:
    folder.write(1, 2, 3)
    folder.data.project()
    assert folder.operations() == 3
    assert folder.pid() != os.getpid()
    assert folder.projection.missing() == ""


@pytest.mark.fault("F2")
def test_a_stop_projects_what_is_on_disk_and_loses_no_count(folder: Folder) -> None:
    folder.write(*range(1, 41))
    folder.projection.stop(20.0)
    assert folder.projection.pid is None
    assert folder.operations() == 40
    assert folder.counted("memtrace.projection.operations") == 40
    assert folder.counted("memtrace.projection.restarts") == 0


@pytest.mark.fault("F1")
def test_a_killed_child_is_started_again_and_goes_on(folder: Folder) -> None:
    folder.write(1)
    folder.data.project()
    killed = folder.pid()
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: folder.projection.missing() != "", "the notice that it has ended")
    assert "signal 9" in folder.projection.missing()
    folder.write(2)
    folder.data.project()
    assert folder.operations() == 2
    assert folder.pid() != killed
    eventually(lambda: folder.projection.missing() == "", "the notice that all is well")
    assert folder.counted("memtrace.projection.restarts") == 1


def test_the_child_ignores_the_signals_that_a_terminal_sends_to_all(folder: Folder) -> None:
    pid = folder.pid()
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    folder.write(1)
    folder.data.project()
    assert folder.pid() == pid


@pytest.mark.fault("F8")
def test_only_one_process_writes_facts(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fact_writer, "WAIT_SECONDS", 0.05)
    with pytest.raises(StoreInUseError, match="goes on writing"):
        FactWriter(folder.path, RecordReader(), NULL_METRICS)


def test_nothing_of_the_settings_stands_where_others_can_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTRACE_MODEL_API_KEY", SECRET)
    store = tmp_path / "store"
    config = load({"store": str(store)}, os.environ)
    with closing(DataFolder(store, config, NULL_METRICS, Apart)) as data:
        assert isinstance(data.projection, Apart)
        process = Path(f"/proc/{data.projection.pid}")
        command_line = (process / "cmdline").read_text()
        assert str(store) not in command_line
        assert SECRET not in command_line + (process / "environ").read_text()


def test_damaged_facts_are_told_before_anything_runs(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / FACTS_FILE).write_bytes(b"this was never a database" * 1_000)
    with pytest.raises(DamagedError, match="facts"):
        DataFolder(store, Config(store=str(store)), NULL_METRICS, Apart)


def test_the_child_does_not_outlive_a_killed_owner(tmp_path: Path) -> None:
    up = start_up(tmp_path / "store")
    (child,) = children(up.process.pid)
    up.stop(signal.SIGKILL)
    eventually(lambda: not is_running(child), "the end of the child")


def test_metrics_of_up_hold_what_its_child_counted(tmp_path: Path) -> None:
    up = start_up(tmp_path / "store")
    assert up.post((VECTORS / "merged_wrong.otlp.json").read_bytes()).status_code == 200
    counted = "memtrace_projection_operations_total 14.0"
    eventually(lambda: counted in up.metrics().splitlines(), "the counters")
    took = up.metrics().count("memtrace_operation_duration_seconds_count{")
    assert took > 3, "steps, with the distributions that crossed from the child"
    assert up.stop() == 0
