"""Folders that refuse, that are another's, that two want, and tables that run out."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memtrace_collector.config import Config
from memtrace_collector.errors import StoreInUseError, WrongUseError
from memtrace_collector.log.errors import LogInUseError, LogUnavailableError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.owner import owned
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.faults.limits import NOBODY, another_user, no_more_files, read_only
from tests.memtrace_collector.processor.spans import memory_span, request

GRAPH = "user:folders"


def record(number: int) -> LogRecord:
    span = memory_span(number, 1, "ingest", graph=GRAPH, outputs=[f"msg:{number}@a"])
    return LogRecord("default", 1, "traces", "protobuf", request(span).SerializeToString())


def append(log: SegmentLog, *numbers: int) -> None:
    for number in numbers:
        log.append(record(number)).result(20)


def bodies(folder: Path) -> list[bytes]:
    return [entry.record.body for entry in read(folder, START)]


def opened(folder: Path) -> DataFolder:
    return DataFolder(folder, Config(store=str(folder)), NULL_METRICS)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that somebody without rights may use; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        inner = Path(name) / "store"
        inner.mkdir()
        if os.geteuid() == 0:
            os.chown(inner, NOBODY, NOBODY)
        yield inner


@pytest.mark.fault("F7")
def test_a_read_only_folder_is_refused_in_words(folder: Path) -> None:
    with read_only(folder), pytest.raises(WrongUseError, match="cannot use"):
        opened(folder)


@pytest.mark.fault("F7")
def test_a_folder_of_somebody_else_is_refused_in_words(folder: Path) -> None:
    with another_user():
        opened(folder).close()
    theirs = folder / "log"
    theirs.chmod(0o500)
    os.chown(theirs, os.geteuid(), -1)
    with another_user(), pytest.raises(WrongUseError, match="cannot use"):
        opened(folder)


@pytest.mark.fault("F7")
def test_a_log_that_becomes_read_only_refuses_and_goes_on_afterwards(folder: Path) -> None:
    with another_user():
        log = SegmentLog(folder, segment_bytes=1)
        append(log, 1)
    with read_only(folder), pytest.raises(LogUnavailableError):
        append(log, 2)
    with another_user():
        append(log, 3)
        log.close()
    assert bodies(folder) == [record(1).body, record(3).body]


@pytest.mark.fault("F7")
def test_without_file_numbers_the_log_refuses_and_goes_on_afterwards(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=1)
    with contextlib.closing(log):
        append(log, 1)
        with no_more_files(), pytest.raises(LogUnavailableError):
            append(log, 2)
        append(log, 3)
    assert bodies(tmp_path) == [record(1).body, record(3).body]


@pytest.mark.fault("F7")
def test_without_file_numbers_the_projection_fails_and_goes_on_afterwards(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    with contextlib.closing(log):
        append(log, 1, 2, 3)
    with contextlib.closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        projector = Projector(tmp_path / "log", store, RecordReader())
        with no_more_files(), pytest.raises((OSError, sqlite3.Error)):
            projector.run_once()
        projector.run_once()
        assert len(list(store.all_operations(GRAPH))) == 3


@pytest.mark.fault("F8")
def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    with owned(tmp_path, "up"), pytest.raises(StoreInUseError, match="memtrace-otel up"):
        owned(tmp_path, "rebuild").__enter__()
    with contextlib.closing(SegmentLog(tmp_path / "log")), pytest.raises(LogInUseError):
        SegmentLog(tmp_path / "log")


@pytest.mark.fault("F9")
def test_a_store_of_a_later_release_is_refused_and_its_backlog_waits(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log")
    path = tmp_path / "facts.db"
    with contextlib.closing(log):
        append(log, 1, 2)
        with contextlib.closing(SqliteFactStore(path)) as store:
            Projector(tmp_path / "log", store, RecordReader()).run_once()
            half = store.cursor()
        append(log, 3, 4)
    version = _set_version(path, +1)
    with pytest.raises(WrongUseError, match=f"schema version {version}"):
        SqliteFactStore(path)
    _set_version(path, -1)
    with contextlib.closing(SqliteFactStore(path)) as store:
        assert store.cursor() == half
        assert Projector(tmp_path / "log", store, RecordReader()).run_once() == 2
        assert len(list(store.all_operations(GRAPH))) == 4


def _set_version(path: Path, step: int) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0]) + step
        connection.execute(f"PRAGMA user_version = {version}")
    return version
