"""A disk without room: refused in time, retried, and nothing lost."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from memtrace_collector.log.errors import LogUnavailableError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import Damage, read
from memtrace_collector.log.room import CHECK_SECONDS, DiskRoom
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.faults.limits import largest_file, writev_as
from tests.memtrace_collector.processor.spans import memory_span, request
from tests.receivers import serving

GRAPH = "user:full"
ROOMY = 1 << 40
REAL_WRITEV = os.writev


def body(number: int) -> bytes:
    ref = f"msg:{number}@a"
    text = f"{number}: " + "words and more words " * 40
    return bytes(
        request(
            memory_span(number, 1, "ingest", graph=GRAPH, outputs=[ref], values={ref: text})
        ).SerializeToString()
    )


def record(number: int) -> LogRecord:
    return LogRecord("default", 1, "traces", "protobuf", body(number))


def numbers(folder: Path, damages: list[Damage]) -> list[bytes]:
    return [entry.record.body for entry in read(folder, START, damages.append)]


class FullDisk:
    """Takes so many bytes and no more, the last write short."""

    def __init__(self, room: int) -> None:
        self.room = room

    def writev(self, fd: int, parts: Sequence[Any]) -> int:
        data = b"".join(bytes(part) for part in parts)
        if data and not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = REAL_WRITEV(fd, [data[: self.room]])
        self.room -= written
        return written


@pytest.mark.fault("F3")
def test_the_log_refuses_while_the_disk_is_full_and_keeps_what_it_acknowledged(
    tmp_path: Path,
) -> None:
    disk = FullDisk(0)
    acknowledged: list[bytes] = []
    log = SegmentLog(tmp_path, segment_bytes=5_000, fsync=False)
    with contextlib.closing(log), writev_as(disk.writev):
        for number in range(60):
            if number % 7 == 0:
                disk.room = 4_000  # somebody made room
            item = record(number)
            with contextlib.suppress(LogUnavailableError):
                log.append(item).result(20)
                acknowledged.append(item.body)
    damages: list[Damage] = []
    assert 20 < len(acknowledged) < 60
    assert numbers(tmp_path, damages) == acknowledged
    assert damages == []


@pytest.mark.fault("F3", "F4")
def test_a_log_file_that_the_kernel_cuts_short_is_no_loss(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    with contextlib.closing(log):
        log.append(record(1)).result(20)
        with largest_file(1_500), pytest.raises(LogUnavailableError):
            log.append(record(2)).result(20)
        log.append(record(3)).result(20)
    damages: list[Damage] = []
    assert numbers(tmp_path, damages) == [body(1), body(3)]
    assert damages == []


@pytest.mark.fault("F3")
@pytest.mark.otlp_rule("C21")
def test_senders_are_told_to_come_back_before_the_disk_is_full(tmp_path: Path) -> None:
    free = [0]

    def statvfs(path: object) -> os.statvfs_result:
        return os.statvfs_result((1, 1, ROOMY, free[0], free[0], 0, 0, 0, 0, 255))

    now = [0.0]
    room = DiskRoom(tmp_path, 1_000_000, statvfs=statvfs, clock=lambda: now[0])
    log = SegmentLog(tmp_path / "log", room=room)
    with contextlib.closing(log), serving(Ingest(log.append)) as receiver:
        url = f"http://127.0.0.1:{receiver.http_port}/v1/traces"
        headers = {"content-type": "application/x-protobuf"}
        refused = httpx.post(url, content=body(1), headers=headers)
        free[0] = ROOMY
        now[0] += CHECK_SECONDS
        taken = httpx.post(url, content=body(1), headers=headers)
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) > 0
    assert taken.status_code == 200
    assert numbers(tmp_path / "log", []) == [body(1)]


@pytest.mark.fault("F3")
def test_projection_onto_a_full_disk_stops_and_goes_on_without_a_loss(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log", fsync=False)
    with contextlib.closing(log):
        for number in range(1, 300):
            log.append(record(number)).result(20)
    with contextlib.closing(SqliteFactStore(tmp_path / "clean.db")) as clean:
        Projector(tmp_path / "log", clean, RecordReader()).run_once()
        expected = clean.graph_hash(GRAPH)
    with contextlib.closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        projector = Projector(tmp_path / "log", store, RecordReader())
        with largest_file(150_000):
            for _ in range(2):
                with pytest.raises(Exception, match="disk"):
                    projector.run_once()
            assert list(store.all_operations(GRAPH)) == [], "reading goes on"
            assert store.cursor() == START
        projector.run_once()
        assert store.graph_hash(GRAPH) == expected


@pytest.mark.fault("F3")
def test_a_checkpoint_that_finds_no_room_loses_nothing(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log", fsync=False)
    with contextlib.closing(log):
        for number in range(1, 200):
            log.append(record(number)).result(20)
    store = SqliteFactStore(tmp_path / "facts.db")
    Projector(tmp_path / "log", store, RecordReader()).run_once()
    expected = store.graph_hash(GRAPH)
    with largest_file(20_000):
        store.close()  # copies the write-ahead log into the file, as far as it can
    with contextlib.closing(SqliteFactStore(tmp_path / "facts.db")) as again:
        assert again.graph_hash(GRAPH) == expected
