from __future__ import annotations

import os
from pathlib import Path

import pytest

from memtrace_collector.log.errors import LogUnavailableError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read
from memtrace_collector.log.room import CHECK_BYTES, CHECK_SECONDS, DiskRoom
from memtrace_collector.log.segments import SegmentLog

GIB = 1 << 30


class Disk:
    """A file system of a given size; counts how often it is asked."""

    def __init__(self, size: int, free: int) -> None:
        self.size, self.free = size, free
        self.asked = 0

    def statvfs(self, path: object) -> os.statvfs_result:
        self.asked += 1
        blocks, free = self.size // 4096, self.free // 4096
        return os.statvfs_result((4096, 4096, blocks, free, free, 0, 0, 0, 0, 255))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def room(disk: Disk, clock: Clock, reserve: int | None = None) -> DiskRoom:
    return DiskRoom(Path("/"), reserve, statvfs=disk.statvfs, clock=clock)


def record(size: int) -> LogRecord:
    return LogRecord("t", 1, "traces", "protobuf", bytes(size))


@pytest.mark.fault("F3")
def test_the_log_refuses_before_the_disk_is_full_and_takes_again_when_there_is_room(
    tmp_path: Path,
) -> None:
    disk, clock = Disk(100 * GIB, GIB + 5_000), Clock()
    log = SegmentLog(tmp_path, room=room(disk, clock))
    log.append(record(100)).result(20)
    with pytest.raises(LogUnavailableError, match="nearly full"):
        log.append(record(8_000))
    assert len(list(read(tmp_path, START))) == 1, "reading goes on"
    disk.free = 2 * GIB
    clock.now += CHECK_SECONDS
    log.append(record(8_000)).result(20)
    log.close()
    assert [len(entry.record.body) for entry in read(tmp_path, START)] == [100, 8_000]


@pytest.mark.parametrize(
    ("size", "free", "reserve", "fits", "too_many"),
    [
        (100 * GIB, 2 * GIB, None, GIB - 8192, GIB + 8192),
        (GIB, GIB // 10, None, GIB // 20 - 8192, GIB // 20 + 8192),
        (100 * GIB, GIB, 0, GIB, GIB + 1),
    ],
)
def test_the_reserve_is_a_gibibyte_or_a_twentieth_of_a_small_disk_or_as_told(
    size: int, free: int, reserve: int | None, fits: int, too_many: int
) -> None:
    disk, clock = Disk(size, free), Clock()
    assert not room(disk, clock, reserve).take(too_many)
    assert room(disk, clock, reserve).take(fits)


def test_the_file_system_is_asked_rarely_and_after_many_bytes() -> None:
    disk, clock = Disk(100 * GIB, 50 * GIB), Clock()
    space = room(disk, clock)
    for _ in range(1_000):
        assert space.take(1_000)
    assert disk.asked == 1
    assert space.take(CHECK_BYTES)
    assert disk.asked == 2
    clock.now += CHECK_SECONDS
    assert space.take(1)
    assert disk.asked == 3


def test_bytes_that_wait_for_the_disk_count_as_used() -> None:
    disk, clock = Disk(100 * GIB, GIB + 10_000), Clock()
    assert not room(disk, clock).take(4_000, waiting=8_000)
    assert room(disk, clock).take(4_000, waiting=1_000)


def test_a_file_system_that_cannot_be_asked_is_tried() -> None:
    def failing(path: object) -> os.statvfs_result:
        raise OSError("no such call here")

    assert DiskRoom(Path("/"), statvfs=failing).take(1 << 30)
