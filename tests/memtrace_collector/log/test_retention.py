from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from memtrace_collector.log import files
from memtrace_collector.log.beginning import FILE_NAME, Missed, read_beginning
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import Damage, read, segment_numbers, segment_path
from memtrace_collector.log.retention import Limits, LogRetention, Readers, Segment, expired
from memtrace_collector.log.segments import SegmentLog

DAY_NS = 86_400 * 1_000_000_000
FAR = LogPosition(1_000, 0)


class Counted:
    """Metrics that remember."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()

    def add(self, name: str, value: int, **attributes: str) -> None:
        self.counts[(name, *attributes.values())] += value


def filled(folder: Path, segments: int) -> SegmentLog:
    log = SegmentLog(folder, segment_bytes=1, fsync=False)
    for number in range(1, segments + 1):
        log.append(LogRecord("t", number, "traces", "protobuf", b"%d" % number)).result(20)
    return log


def retention(
    log: SegmentLog,
    limits: Limits,
    readers: Readers = Readers(FAR, None),  # noqa: B008  # immutable
    metrics: Counted | None = None,
    now_ns: int = 0,
) -> LogRetention:
    return LogRetention(
        log.folder,
        limits,
        end=lambda: log.end,
        readers=lambda: readers,
        metrics=metrics or Counted(),
        clock_ns=lambda: now_ns,
    )


def bodies(folder: Path, position: LogPosition = START) -> list[bytes]:
    return [entry.record.body for entry in read(folder, position, on_missed=lambda _: None)]


def test_without_limits_nothing_goes(tmp_path: Path) -> None:
    log = filled(tmp_path, 4)
    assert retention(log, Limits(), now_ns=2**62).run_once() == 0
    log.close()
    assert bodies(tmp_path) == [b"1", b"2", b"3", b"4"]


def test_old_segments_go_but_never_the_open_one(tmp_path: Path) -> None:
    log = filled(tmp_path, 4)
    changed = [segment_path(tmp_path, number).stat().st_mtime_ns for number in (1, 2, 3, 4)]
    os.utime(segment_path(tmp_path, 3), ns=(changed[2], changed[2] + DAY_NS))
    metrics = Counted()
    now = changed[2] + DAY_NS
    assert retention(log, Limits(seconds=3600), metrics=metrics, now_ns=now).run_once() == 2
    assert segment_numbers(tmp_path) == [3, 4]
    assert retention(log, Limits(seconds=3600), now_ns=now + 2 * DAY_NS).run_once() == 1
    assert segment_numbers(tmp_path) == [4], "the open segment stays however old"
    log.append(LogRecord("t", 5, "traces", "protobuf", b"5")).result(20)
    log.close()
    assert bodies(tmp_path) == [b"4", b"5"]
    assert metrics.counts["memtrace.log.expired", "age"] > 0


def test_what_is_not_projected_stays_whatever_the_limits(tmp_path: Path) -> None:
    log = filled(tmp_path, 5)
    second = LogPosition(2, segment_path(tmp_path, 2).stat().st_size)
    limits = Limits(seconds=1, size=1)
    assert retention(log, limits, Readers(second, None), now_ns=2**62).run_once() == 2
    assert bodies(tmp_path) == [b"3", b"4", b"5"]
    log.close()


def test_only_the_size_takes_what_is_not_forwarded_and_counts_it() -> None:
    segments = [Segment(number, 10, 0) for number in (1, 2, 3)]
    readers = Readers(FAR, LogPosition(1, 10))
    by_age = list(expired(segments, readers, Limits(seconds=1), DAY_NS))
    assert [(segment.number, reason) for segment, reason in by_age] == [(1, "age")]
    by_size = list(expired(segments, readers, Limits(size=15), DAY_NS))
    assert [(segment.number, reason) for segment, reason in by_size] == [
        (1, "size"),
        (2, "not_forwarded"),
    ]


def test_a_reader_before_the_beginning_goes_on_there_and_learns_what_it_missed(
    tmp_path: Path,
) -> None:
    log = filled(tmp_path, 5)
    entries = list(read(tmp_path, START))
    retention(log, Limits(seconds=1), Readers(entries[2].next, None), now_ns=2**62).run_once()
    log.close()
    for position, segments in (
        (START, 3),
        (entries[0].position, 3),
        (entries[1].position, 2),
        (entries[0].next, 3),
        (entries[2].next, 0),
        (entries[3].position, 0),
    ):
        missed: list[Missed] = []
        found = [entry.record.body for entry in read(tmp_path, position, on_missed=missed.append)]
        assert found == [b"4", b"5"]
        assert [item.segments for item in missed] == ([segments] if segments else [])


@pytest.mark.fault("F27")
def test_a_pass_that_was_killed_before_the_files_went_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path, 4)
    with monkeypatch.context() as patched:
        patched.setattr(files, "remove", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            retention(log, Limits(seconds=1), now_ns=2**62).run_once()
    assert segment_numbers(tmp_path) == [1, 2, 3, 4]
    assert bodies(tmp_path) == [b"4"], "what is announced is gone for every reader"
    retention(log, Limits(seconds=1), now_ns=2**62).run_once()
    log.close()
    assert segment_numbers(tmp_path) == [4]


@pytest.mark.fault("F6")
def test_a_segment_that_somebody_deleted_is_reported(tmp_path: Path) -> None:
    filled(tmp_path, 4).close()
    segment_path(tmp_path, 2).unlink()
    damages: list[Damage] = []
    assert [entry.record.body for entry in read(tmp_path, START, damages.append)] == [
        b"1",
        b"3",
        b"4",
    ]
    assert [(damage.position.segment, damage.next.segment) for damage in damages] == [(2, 3)]
    assert read_beginning(tmp_path) == START


@pytest.mark.fault("F6")
@pytest.mark.parametrize("content", [b"", b"[3", b"{}", b"7", b"\xff\xfe"])
def test_a_beginning_that_says_nothing_holds_nobody_up(tmp_path: Path, content: bytes) -> None:
    log = filled(tmp_path, 4)
    retention(log, Limits(seconds=1), now_ns=2**62).run_once()
    log.close()
    (tmp_path / FILE_NAME).write_bytes(content)
    damages: list[Damage] = []
    assert [entry.record.body for entry in read(tmp_path, START, damages.append)] == [b"4"]
    assert [damage.next for damage in damages] == [LogPosition(4, 0)]
