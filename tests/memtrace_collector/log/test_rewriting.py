from __future__ import annotations

import os
from pathlib import Path

import pytest

from memtrace_collector.log import files
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import Entry, read, segment_path
from memtrace_collector.log.rewriting import rewrite_segment
from memtrace_collector.log.segments import SegmentLog


def filled(folder: Path) -> Path:
    log = SegmentLog(folder, fsync=False)
    for body in (b"first", b"secret", b"third"):
        log.append(LogRecord("t", 7, "traces", "json", body)).result(20)
    log.close()
    return segment_path(folder, 1)


def without_secret(entry: Entry) -> LogRecord | None:
    if entry.record.body != b"secret":
        return None
    return LogRecord("t", entry.record.time_ns, "traces", "json", b"      ")


def keep(data: bytes) -> bool:
    return False


def test_a_record_changes_in_its_place_and_nothing_else_does(tmp_path: Path) -> None:
    path = filled(tmp_path)
    before, old, times = list(read(tmp_path, START)), path.read_bytes(), path.stat()
    assert rewrite_segment(tmp_path, 1, without_secret, keep) == 1
    after = list(read(tmp_path, START))
    assert [entry.record.body for entry in after] == [b"first", b"      ", b"third"]
    assert [entry.position for entry in after] == [entry.position for entry in before]
    assert [entry.record.time_ns for entry in after] == [7, 7, 7]
    new, (first, second, third) = path.read_bytes(), before
    assert len(new) == len(old)
    assert new[: second.position.offset] == old[: second.position.offset]
    assert new[third.position.offset :] == old[third.position.offset :]
    assert first.position.offset == 0
    assert path.stat().st_mtime_ns == times.st_mtime_ns, "retention counts from the writing"
    assert rewrite_segment(tmp_path, 1, without_secret, keep) == 0


def test_nothing_to_change_leaves_the_file_alone(tmp_path: Path) -> None:
    path = filled(tmp_path)
    inode = path.stat().st_ino
    assert rewrite_segment(tmp_path, 1, lambda entry: None, keep) == 0
    assert path.stat().st_ino == inode


def test_damaged_bytes_are_zeroed_where_asked(tmp_path: Path) -> None:
    path = filled(tmp_path)
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"secret") - 3] ^= 0xFF
    path.write_bytes(damaged)
    assert rewrite_segment(tmp_path, 1, without_secret, keep) == 0
    assert rewrite_segment(tmp_path, 1, without_secret, lambda data: b"secret" in data) == 1
    assert b"secret" not in path.read_bytes()
    found = [entry.record.body for entry in read(tmp_path, START, on_damage=lambda _: None)]
    assert found == [b"first", b"third"]


def test_another_size_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = filled(tmp_path)
    old = path.read_bytes()
    with pytest.raises(ValueError, match="another size"):
        rewrite_segment(
            tmp_path, 1, lambda entry: LogRecord("t", 1, "traces", "json", b"long" * 9), keep
        )
    assert path.read_bytes() == old


@pytest.mark.fault("F1")
@pytest.mark.parametrize("killed_in", ["write_all", "fsync", "replace", "sync_folder"])
def test_a_kill_at_any_step_leaves_the_old_segment_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    path = filled(tmp_path)
    where = files if hasattr(files, killed_in) and killed_in != "replace" else os

    def kill(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(where, killed_in, kill)
        with pytest.raises(KeyboardInterrupt):
            rewrite_segment(tmp_path, 1, without_secret, keep)
    assert [entry.record.body for entry in read(tmp_path, START)][1] in (b"secret", b"      ")
    rewrite_segment(tmp_path, 1, without_secret, keep)
    assert b"secret" not in path.read_bytes()
    SegmentLog(tmp_path).close()
    assert [entry.record.body for entry in read(tmp_path, START)] == [b"first", b"      ", b"third"]
