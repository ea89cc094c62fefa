from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path

import pytest

from memtrace_collector.log import files, segments
from memtrace_collector.log.errors import LogInUseError, LogOverloadedError, LogUnavailableError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import Damage, read, segment_numbers, segment_path
from memtrace_collector.log.segments import SegmentLog

DEADLINE = 20.0


def record(body: bytes, tenant: str = "default") -> LogRecord:
    return LogRecord(tenant, 1_700_000_000_000_000_000, "traces", "protobuf", body)


def append_all(log: SegmentLog, bodies: list[bytes]) -> list[LogPosition]:
    return [log.append(record(body)).result(DEADLINE) for body in bodies]


def bodies(folder: Path, position: LogPosition = START) -> list[bytes]:
    return [entry.record.body for entry in read(folder, position)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SegmentLog]:
    log = SegmentLog(tmp_path / "log")
    yield log
    log.close()


def test_records_come_back_as_they_went_in_from_every_position(log: SegmentLog) -> None:
    records = [
        LogRecord("default", 1, "traces", "protobuf", b""),
        LogRecord("tenant-\u00e4", 2**62, "logs", "json", b"{}"),
        LogRecord("t", -1, "traces", "json", bytes(range(256)) * 1000),
    ]
    positions = [log.append(item).result(DEADLINE) for item in records]
    entries = list(read(log.folder, START))
    assert [entry.record for entry in entries] == records
    assert [entry.position for entry in entries] == positions
    assert entries[-1].next == log.end
    for number, entry in enumerate(entries):
        assert [later.record for later in read(log.folder, entry.position)] == records[number:]
        assert [later.record for later in read(log.folder, entry.next)] == records[number + 1 :]


def test_a_full_segment_is_followed_by_a_new_one(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=100)
    positions = append_all(log, [b"x" * 60] * 5)
    log.close()
    assert len(segment_numbers(tmp_path)) == 5 // 2 + 1
    assert positions == sorted(positions)
    assert bodies(tmp_path) == [b"x" * 60] * 5


def test_an_opened_again_log_never_gives_out_a_position_twice(tmp_path: Path) -> None:
    seen: set[LogPosition] = set()
    for run in range(3):
        log = SegmentLog(tmp_path)
        position = log.append(record(b"%d" % run)).result(DEADLINE)
        assert position not in seen
        seen.add(position)
        log.close()
    assert bodies(tmp_path) == [b"0", b"1", b"2"]


def test_everything_queued_shares_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SegmentLog(tmp_path)
    syncs = []
    first_sync = threading.Event()
    release = threading.Event()

    def slow_sync(fd: int) -> None:
        syncs.append(fd)
        first_sync.set()
        release.wait(DEADLINE)

    monkeypatch.setattr(files.os, "fdatasync", slow_sync)
    head = log.append(record(b"first"))
    assert first_sync.wait(DEADLINE)
    rest = [log.append(record(b"%d" % number)) for number in range(500)]
    assert not head.done()
    assert list(read(tmp_path, START)) == [], "nothing may be read before it is durable"
    release.set()
    wait([head, *rest], DEADLINE)
    log.close()
    assert len(syncs) == 2
    assert len(bodies(tmp_path)) == 501


def test_a_full_queue_refuses_and_takes_records_again_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SegmentLog(tmp_path, max_queued_bytes=1000)
    syncing, release = threading.Event(), threading.Event()

    def stuck(fd: int) -> None:
        syncing.set()
        release.wait(DEADLINE)

    monkeypatch.setattr(files.os, "fdatasync", stuck)
    accepted: list[Future[LogPosition]] = [log.append(record(b"first"))]
    assert syncing.wait(DEADLINE)
    with pytest.raises(LogOverloadedError):
        while True:
            accepted.append(log.append(record(b"x" * 100)))
    release.set()
    wait(accepted, DEADLINE)
    log.append(record(b"last")).result(DEADLINE)
    log.close()
    assert len(bodies(tmp_path)) == len(accepted) + 1


@pytest.mark.fault("F3", "F4")
@pytest.mark.parametrize("failing", ["writev", "fdatasync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_refuses_and_the_log_goes_on_when_it_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, code: int
) -> None:
    log = SegmentLog(tmp_path)
    append_all(log, [b"before"])
    real = getattr(os, failing)

    def fail(fd: int, *args: object) -> int:
        if failing == "writev":
            os.write(fd, b"half of a fra")
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, failing, fail)
    for _ in range(3):
        with pytest.raises(LogUnavailableError):
            log.append(record(b"refused")).result(DEADLINE)
    monkeypatch.setattr(files.os, failing, real)
    append_all(log, [b"after"])
    log.close()
    damages: list[Damage] = []
    assert [entry.record.body for entry in read(tmp_path, START, damages.append)] == [
        b"before",
        b"after",
    ]
    assert damages == []


@pytest.mark.fault("F5", "F6")
def test_a_tail_torn_at_any_byte_is_cut_and_the_rest_kept(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    log = SegmentLog(whole)
    positions = append_all(log, [b"first", b"second", b"third record"])
    end = log.end
    log.close()
    data = segment_path(whole, end.segment).read_bytes()
    for size in range(positions[-1].offset, end.offset):
        folder = tmp_path / str(size)
        folder.mkdir()
        segment_path(folder, end.segment).write_bytes(data[:size])
        log = SegmentLog(folder, fsync=False)
        assert log.recovered == (positions[-1], size - positions[-1].offset)
        append_all(log, [b"new"])
        log.close()
        assert bodies(folder) == [b"first", b"second", b"new"]


@pytest.mark.fault("F6")
def test_damage_in_the_middle_is_reported_and_costs_only_the_damaged_record(
    tmp_path: Path,
) -> None:
    whole = tmp_path / "whole"
    log = SegmentLog(whole)
    positions = append_all(log, [b"first", b"second", b"third"])
    log.close()
    data = segment_path(whole, 1).read_bytes()
    for offset in range(positions[1].offset, positions[2].offset):
        folder = tmp_path / str(offset)
        folder.mkdir()
        damaged = bytearray(data)
        damaged[offset] ^= 0xFF
        segment_path(folder, 1).write_bytes(damaged)
        reports: list[Damage] = []
        found = [entry.record.body for entry in read(folder, START, reports.append)]
        assert found == [b"first", b"third"]
        assert [(report.position, report.next) for report in reports] == [
            (positions[1], positions[2])
        ]


@pytest.mark.fault("F6")
def test_a_truncated_segment_before_the_last_is_reported_not_cut(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=1)
    append_all(log, [b"first", b"second", b"third"])
    log.close()
    path = segment_path(tmp_path, 2)
    path.write_bytes(path.read_bytes()[:-1])
    size = path.stat().st_size
    SegmentLog(tmp_path).close()
    reports: list[Damage] = []
    assert [entry.record.body for entry in read(tmp_path, START, reports.append)] == [
        b"first",
        b"third",
    ]
    assert [report.size for report in reports] == [size]
    assert path.stat().st_size == size


@pytest.mark.fault("F6")
def test_a_body_that_holds_frames_is_never_read_as_frames(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    log = SegmentLog(inner)
    append_all(log, [b"forged", b"forged too"])
    log.close()
    outer = tmp_path / "outer"
    log = SegmentLog(outer)
    positions = append_all(log, [segment_path(inner, 1).read_bytes(), b"genuine"])
    log.close()
    path = segment_path(outer, 1)
    damaged = bytearray(path.read_bytes())
    damaged[0] ^= 0xFF
    path.write_bytes(damaged)
    reports: list[Damage] = []
    assert [entry.record.body for entry in read(outer, START, reports.append)] == [b"genuine"]
    assert reports[0].next == positions[1]


@pytest.mark.fault("F8")
def test_a_second_owner_is_refused(log: SegmentLog) -> None:
    with pytest.raises(LogInUseError):
        SegmentLog(log.folder)


def test_a_closed_log_refuses_and_has_kept_what_was_queued(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    futures = [log.append(record(b"%d" % number)) for number in range(100)]
    log.close()
    assert all(future.done() for future in futures)
    with pytest.raises(LogUnavailableError):
        log.append(record(b"late"))
    assert len(bodies(tmp_path)) == 100


def test_a_record_whose_sender_left_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SegmentLog(tmp_path)
    syncing, release = threading.Event(), threading.Event()

    def stuck(fd: int) -> None:
        syncing.set()
        release.wait(DEADLINE)

    monkeypatch.setattr(files.os, "fdatasync", stuck)
    log.append(record(b"kept"))
    assert syncing.wait(DEADLINE)
    assert log.append(record(b"withdrawn")).cancel()
    release.set()
    log.close()
    assert bodies(tmp_path) == [b"kept"]


def test_a_reader_that_waits_follows_the_writer_across_segments(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, segment_bytes=200)
    expected = [b"%d" % number for number in range(200)]
    found: list[bytes] = []

    def follow() -> None:
        position = START
        while len(found) < len(expected) and log.wait(position, DEADLINE):
            for entry in read(tmp_path, position):
                found.append(entry.record.body)
                position = entry.next

    thread = threading.Thread(target=follow)
    thread.start()
    append_all(log, expected)
    thread.join(DEADLINE)
    log.close()
    assert found == expected


def test_waiting_ends_with_the_time_out_or_the_log(log: SegmentLog) -> None:
    append_all(log, [b"x"])
    assert log.wait(START, 0)
    assert not log.wait(log.end, 0.01)
    waiting = threading.Thread(target=log.wait, args=(log.end, DEADLINE))
    waiting.start()
    log.close()
    waiting.join(DEADLINE)
    assert not waiting.is_alive()


def test_a_folder_that_could_not_be_opened_is_free_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(segments, "recover", fail)
        with pytest.raises(OSError, match="Input/output"):
            SegmentLog(tmp_path)
    SegmentLog(tmp_path).close()


APPENDER = """
import sys
from pathlib import Path
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.segments import SegmentLog

log = SegmentLog(Path(sys.argv[1]), segment_bytes=20_000)
run = sys.argv[2]
number = 0
while True:
    batch = [f"{run}/{number + index}/" + "x" * 300 for index in range(20)]
    number += len(batch)
    futures = [
        log.append(LogRecord("default", 1, "traces", "protobuf", body.encode())) for body in batch
    ]
    for body, future in zip(batch, futures):
        future.result()
        sys.stdout.write(body.partition("x")[0] + "\\n")
    sys.stdout.flush()
"""


@pytest.mark.fault("F1")
def test_every_acknowledged_record_is_there_once_after_kills_at_random_moments(
    tmp_path: Path,
) -> None:
    chance = random.Random(7)
    acknowledged: list[str] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for run in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", APPENDER, str(tmp_path), str(run)],
            stdout=subprocess.PIPE,
            env=environment,
        ) as process:
            assert process.stdout is not None
            head = [process.stdout.readline() for _ in range(chance.randrange(1, 60))]
            time.sleep(chance.random() / 50)
            process.send_signal(signal.SIGKILL)
            lines = b"".join([*head, process.stdout.read()]).decode().split("\n")
        acknowledged += lines[:-1]
    log = SegmentLog(tmp_path)
    log.close()
    found = [body.decode().partition("x")[0] for body in bodies(tmp_path)]
    assert len(acknowledged) > 8
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)
