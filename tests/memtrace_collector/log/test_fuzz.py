"""Damage of any kind costs the records it touches, is reported, and invents nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memtrace_collector.log.format import LogRecord, encode
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import Damage, read, segment_path
from memtrace_collector.log.segments import SegmentLog

RECORDS = st.lists(
    st.builds(
        LogRecord,
        tenant=st.text(max_size=10).filter(lambda text: text.isprintable()),
        time_ns=st.integers(-(2**63), 2**63 - 1),
        signal=st.sampled_from(["traces", "logs"]),
        encoding=st.sampled_from(["protobuf", "json"]),
        body=st.binary(max_size=60),
    ),
    min_size=1,
    max_size=6,
)


def written(folder: Path, records: list[LogRecord]) -> list[int]:
    """Write a segment; where each record starts, and where the last one ends."""
    starts, data = [0], b""
    for record in records:
        data += b"".join(encode(record, LogPosition(1, len(data))))
        starts.append(len(data))
    segment_path(folder, 1).write_bytes(data)
    return starts


def reading(folder: Path) -> tuple[list[LogRecord], list[Damage]]:
    damages: list[Damage] = []
    return [entry.record for entry in read(folder, START, damages.append)], damages


@pytest.mark.fault("F6")
@settings(max_examples=150, deadline=None)
@given(RECORDS, st.data())
def test_overwritten_bytes_cost_only_the_records_they_are_in(
    records: list[LogRecord], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        starts = written(folder, records)
        path = segment_path(folder, 1)
        content = bytearray(path.read_bytes())
        first = data.draw(st.integers(0, len(content) - 1))
        noise = data.draw(st.binary(min_size=1, max_size=len(content) - first))
        untouched = bytes(content)
        content[first : first + len(noise)] = noise
        path.write_bytes(content)
        segment_path(folder, 2).touch()
        found, damages = reading(folder)
    kept = [
        record
        for record, start, end in zip(records, starts, starts[1:])
        if content[start:end] == untouched[start:end]
    ]
    assert found == kept
    assert bool(damages) == (len(kept) < len(records))


@pytest.mark.fault("F5", "F6")
@settings(max_examples=100, deadline=None)
@given(RECORDS, st.data())
def test_a_log_cut_anywhere_opens_with_the_records_before_the_cut(
    records: list[LogRecord], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        starts = written(folder, records)
        size = data.draw(st.integers(0, starts[-1]))
        path = segment_path(folder, 1)
        path.write_bytes(path.read_bytes()[:size])
        log = SegmentLog(folder, fsync=False)
        log.append(LogRecord("t", 0, "traces", "protobuf", b"new")).result(20)
        log.close()
        found, damages = reading(folder)
    whole = sum(end <= size for end in starts[1:])
    assert found[:-1] == records[:whole]
    assert found[-1].body == b"new"
    assert damages == []
