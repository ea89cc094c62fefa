from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from memtrace_collector.log.control import Erase, carried_out, erase_record, read_erase
from memtrace_collector.log.format import HEAD_BYTES, LogRecord, decode_head, decode_payload
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import read, segment_numbers, segment_path
from memtrace_collector.log.segments import SegmentLog

ORDER = Erase("tenant", "user-7", "order-1")


def test_an_order_is_read_as_it_was_given(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    log.append(erase_record(ORDER, 5)).result(20)
    log.close()
    (entry,) = read(tmp_path, START)
    assert entry.record.signal == "control"
    assert read_erase(entry.record) == ORDER


def test_a_control_record_ends_its_segment(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    log.append(LogRecord("t", 1, "traces", "protobuf", b"before")).result(20)
    order = log.append(erase_record(ORDER, 5)).result(20)
    after = log.append(LogRecord("t", 1, "traces", "protobuf", b"after")).result(20)
    log.close()
    assert order.segment == 1
    assert after == LogPosition(2, 0)
    assert segment_numbers(tmp_path) == [1, 2]
    assert len(list(read(tmp_path, START))) == 3


def test_a_carried_out_order_names_nothing_and_is_as_long_as_before() -> None:
    record = erase_record(ORDER, 5)
    done = carried_out(record, ORDER)
    assert b"user-7" not in done.body
    assert len(done.body) == len(record.body)
    assert read_erase(done) is None


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"erase": 1, "graph_id": "g"}', b'{"erase": "o"}', b"\xff"]
)
def test_an_order_that_cannot_be_read_is_an_error_and_erases_nothing(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_erase(LogRecord("t", 1, "control", "json", body))


def test_an_order_of_a_later_release_is_none_of_ours() -> None:
    assert read_erase(LogRecord("t", 1, "control", "json", b'{"fold": "x"}')) is None


def test_a_request_is_never_an_order() -> None:
    body = erase_record(ORDER, 5).body
    for signal in ("traces", "logs"):
        assert read_erase(LogRecord("t", 1, signal, "json", body)) is None  # type: ignore[arg-type]


@pytest.mark.fault("F9")
def test_a_log_of_the_first_release_is_read(tmp_path: Path) -> None:
    """Frames put together by hand, as the first release wrote them."""
    data = b""
    bodies = []
    for kind in range(4):
        tenant, body = b"t", b"body %d" % kind
        position = struct.pack("<QQ", 1, len(data))
        head = struct.pack(
            "<4sBBHIqI", b"\xf5MTL", 1, kind, 1, len(body), 7, zlib.crc32(tenant + body)
        )
        data += head + struct.pack("<I", zlib.crc32(position, zlib.crc32(head))) + tenant + body
        bodies.append(body)
    segment_path(tmp_path, 1).write_bytes(data)
    log = SegmentLog(tmp_path)
    log.append(erase_record(ORDER, 5)).result(20)
    log.close()
    found = [entry.record for entry in read(tmp_path, START)]
    assert [record.body for record in found[:4]] == bodies
    assert [(record.signal, record.encoding) for record in found] == [
        ("traces", "protobuf"),
        ("traces", "json"),
        ("logs", "protobuf"),
        ("logs", "json"),
        ("control", "json"),
    ]
    head = decode_head(data, LogPosition(1, 0))
    assert head is not None
    assert decode_payload(head, data[HEAD_BYTES : head.frame_bytes]) == found[0]
