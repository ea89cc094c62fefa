"""Input and output errors, short writes, damaged and empty files."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.config import Config
from memtrace_collector.errors import DamagedError
from memtrace_collector.log.durable_end import FILE_NAME as END_FILE
from memtrace_collector.log.errors import LogUnavailableError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import Damage, read, segment_path
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.quarantine import FILE_NAME as QUARANTINE_FILE
from memtrace_collector.processor.quarantine import Quarantine
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.faults.limits import writev_as

REAL_WRITEV = os.writev
DEADLINE = 20


def record(body: bytes) -> LogRecord:
    return LogRecord("default", 1, "traces", "protobuf", body)


def append(log: SegmentLog, *bodies: bytes) -> None:
    for body in bodies:
        log.append(record(body)).result(DEADLINE)


def bodies(folder: Path, damages: list[Damage] | None = None) -> list[bytes]:
    found = [] if damages is None else damages
    return [entry.record.body for entry in read(folder, START, found.append)]


@pytest.mark.fault("F4")
@pytest.mark.parametrize("size", [1, 7, 100])
def test_short_writes_are_gone_on_with(tmp_path: Path, size: int) -> None:
    def short(fd: int, parts: Sequence[Any]) -> int:
        data = b"".join(bytes(part) for part in parts)
        return REAL_WRITEV(fd, [data[:size]])

    log = SegmentLog(tmp_path, fsync=False)
    with contextlib.closing(log), writev_as(short):
        append(log, b"first" * 20, b"second" * 20)
    damages: list[Damage] = []
    assert bodies(tmp_path, damages) == [b"first" * 20, b"second" * 20]
    assert damages == []


@pytest.mark.fault("F4")
def test_a_sync_that_fails_once_and_drops_its_pages_costs_only_what_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Linux does: the error is told once, and the next sync says that all is well."""
    log = SegmentLog(tmp_path)
    with contextlib.closing(log):
        append(log, b"before")
        durable = log.end.offset

        def dropping(fd: int) -> None:
            size = os.fstat(fd).st_size
            path = segment_path(tmp_path, 1)
            with path.open("r+b") as file:
                file.seek(durable)
                file.write(bytes(size - durable))
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", dropping)
            with pytest.raises(LogUnavailableError):
                append(log, b"refused")
        append(log, b"after")
    damages: list[Damage] = []
    assert bodies(tmp_path, damages) == [b"before", b"after"]
    assert damages == []


@pytest.mark.fault("F4")
def test_while_a_broken_segment_cannot_be_cut_everything_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise what was refused could come back after a power cut."""

    def failing(*args: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    log = SegmentLog(tmp_path)
    with contextlib.closing(log):
        append(log, b"before")
        with monkeypatch.context() as patched:
            for name in ("fdatasync", "fsync"):
                patched.setattr(os, name, failing)
            for _ in range(3):
                with pytest.raises(LogUnavailableError):
                    append(log, b"refused")
        append(log, b"after")
    assert bodies(tmp_path) == [b"before", b"after"]


@pytest.mark.fault("F6")
@pytest.mark.parametrize("content", [b"", b"\0" * 20, b"\xff" * 20, b"short"])
def test_an_end_file_that_says_nothing_is_written_anew(tmp_path: Path, content: bytes) -> None:
    log = SegmentLog(tmp_path)
    append(log, b"first")
    log.close()
    (tmp_path / END_FILE).write_bytes(content)
    assert bodies(tmp_path) == [b"first"]
    log = SegmentLog(tmp_path)
    append(log, b"second")
    log.close()
    assert bodies(tmp_path) == [b"first", b"second"]


@pytest.mark.fault("F6")
@pytest.mark.parametrize("number", [1, 2])
def test_an_empty_segment_is_no_obstacle(tmp_path: Path, number: int) -> None:
    log = SegmentLog(tmp_path, segment_bytes=1)
    append(log, b"first", b"second")
    log.close()
    segment_path(tmp_path, number).write_bytes(b"")
    log = SegmentLog(tmp_path)
    append(log, b"third")
    log.close()
    left = [b"second"] if number == 1 else [b"first"]
    assert bodies(tmp_path) == [*left, b"third"]


@pytest.mark.fault("F6")
@pytest.mark.parametrize("page", range(4))
def test_a_corrupt_page_costs_the_records_on_it_and_is_reported(tmp_path: Path, page: int) -> None:
    log = SegmentLog(tmp_path, fsync=False)
    items = [b"%03d" % number * 100 for number in range(60)]
    append(log, *items)
    log.close()
    path = segment_path(tmp_path, 1)
    content = bytearray(path.read_bytes())
    content[page * 4096 : (page + 1) * 4096] = os.urandom(4096)
    path.write_bytes(content)
    damages: list[Damage] = []
    found = bodies(tmp_path, damages)
    assert 60 - 15 <= len(found) < 60
    assert set(found) <= set(items)
    assert sum(damage.size for damage in damages) >= 4096


@pytest.mark.fault("F6")
def test_a_torn_note_of_the_quarantine_is_noted_again_and_then_known(tmp_path: Path) -> None:
    path = tmp_path / QUARANTINE_FILE
    Quarantine(tmp_path).poison(START, ValueError("bad"))
    path.write_bytes(path.read_bytes()[:-9])
    sizes = []
    for _ in range(4):
        Quarantine(tmp_path).poison(START, ValueError("bad"))
        sizes.append(path.stat().st_size)
    assert sizes[-1] == sizes[-2]


@pytest.mark.fault("F6")
@pytest.mark.parametrize("name", ["facts.db", "cases.db"])
def test_a_store_that_is_no_database_is_named_and_left_alone(tmp_path: Path, name: str) -> None:
    with contextlib.closing(DataFolder(tmp_path, Config(store=str(tmp_path)), NULL_METRICS)):
        pass
    garbage = b"no database at all" * 500
    (tmp_path / name).write_bytes(garbage)
    with pytest.raises(DamagedError, match=name):
        DataFolder(tmp_path, Config(store=str(tmp_path)), NULL_METRICS)
    assert (tmp_path / name).read_bytes() == garbage
