from __future__ import annotations

import json
import struct
from pathlib import Path

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.commands import import_reader
from memtrace_collector.commands.import_reader import Piece, Problem, read_file
from memtrace_collector.receiver.decode import decode
from tests.memtrace_collector.running import VECTORS

VECTOR = VECTORS / "omission.otlp.json"


def pieces(path: Path) -> list[Piece]:
    found = list(read_file(path))
    problems = [item for item in found if isinstance(item, Problem)]
    assert not problems
    return [item for item in found if isinstance(item, Piece)]


def spans(found: list[Piece]) -> list[bytes]:
    """Every span's bytes, in order."""
    return [
        span.SerializeToString(deterministic=True)
        for piece in found
        for resource in ExportTraceServiceRequest.FromString(piece.body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_one_request_lines_protobuf_and_delimited_protobuf_hold_the_same(tmp_path: Path) -> None:
    expected = spans(pieces(VECTOR))
    request = decode("traces", "json", VECTOR.read_bytes()).SerializeToString()
    (tmp_path / "lines").write_text(json.dumps(json.loads(VECTOR.read_text())) + "\n\n")
    (tmp_path / "protobuf").write_bytes(request)
    (tmp_path / "delimited").write_bytes(struct.pack(">I", len(request)) + request)
    for name in ("lines", "protobuf", "delimited"):
        assert spans(pieces(tmp_path / name)) == expected
    assert len(expected) == 9


def test_log_records_are_read_from_json_and_protobuf(tmp_path: Path) -> None:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1)
    (tmp_path / "logs.pb").write_bytes(request.SerializeToString())
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "1"}]}]}]}
    (tmp_path / "logs.json").write_text(json.dumps(document))
    for name in ("logs.pb", "logs.json"):
        assert [(piece.signal, piece.items) for piece in pieces(tmp_path / name)] == [("logs", 1)]


def test_a_document_with_spans_and_log_records_gives_both(tmp_path: Path) -> None:
    document = json.loads(VECTOR.read_text())
    document["resourceLogs"] = [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "1"}]}]}]
    path = tmp_path / "both.json"
    path.write_text(json.dumps(document))
    assert [(piece.signal, piece.items) for piece in pieces(path)] == [("traces", 9), ("logs", 1)]


def test_a_bad_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    line = json.dumps(json.loads(VECTOR.read_text()))
    path = tmp_path / "mixed.jsonl"
    path.write_text(f"{line}\n{{broken\n{line}\n")
    found = list(read_file(path))
    assert [type(item) for item in found] == [Piece, Problem, Piece]
    assert isinstance(found[1], Problem)
    assert found[1].where == f"{path}, line 2"
    assert "not JSON" in found[1].reason


def test_a_span_with_a_bad_id_costs_only_itself(tmp_path: Path) -> None:
    document = json.loads(VECTOR.read_text())
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = "nothex"
    path = tmp_path / "bad_id.json"
    path.write_text(json.dumps(document))
    found = list(read_file(path))
    assert [item.items for item in found if isinstance(item, Piece)] == [8]
    assert ["1 of 9" in item.reason for item in found if isinstance(item, Problem)] == [True]


def test_what_is_no_trace_at_all_is_named(tmp_path: Path) -> None:
    for name, content in {
        "empty": b"",
        "text": b"hello, world",
        "object": b'{"hello": "world"}',
        "array": b"[1, 2]",
        "deep": b"[" * 100_000,
        "truncated": VECTOR.read_bytes()[:1000],
    }.items():
        (tmp_path / name).write_bytes(content)
        found = list(read_file(tmp_path / name))
        assert len(found) == 1, name
        assert isinstance(found[0], Problem), name
        assert str(tmp_path / name) in found[0].where


def test_a_large_request_is_cut_between_spans_and_loses_none(tmp_path: Path) -> None:
    request = decode("traces", "json", VECTOR.read_bytes())
    scope = request.resource_spans[0].scope_spans[0]
    first = scope.spans[0]
    for number in range(1, 20_000):
        scope.spans.add().CopyFrom(first)
        scope.spans[-1].span_id = number.to_bytes(8, "big")
    (tmp_path / "large").write_bytes(request.SerializeToString())
    found = pieces(tmp_path / "large")
    assert len(found) > 1
    assert all(len(piece.body) < 1.1 * import_reader.PIECE_BYTES for piece in found)
    whole = spans([Piece("traces", request.SerializeToString(), 0)])
    assert sum(piece.items for piece in found) == len(whole)
    assert set(spans(found)) == set(whole)
