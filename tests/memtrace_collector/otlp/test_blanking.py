"""Elements leave a request; nothing else of it changes, nor its size."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.otlp.blanking import blank_all, blank_json, blank_protobuf, is_blank
from memtrace_collector.receiver.decode import decode

SHAPES = st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3)
"""Of a request: per resource, per scope, how many elements."""


def request(shape: list[list[int]], signal: str = "traces") -> Any:
    message: Any = ExportTraceServiceRequest() if signal == "traces" else ExportLogsServiceRequest()
    number = 0
    for scopes in shape:
        resources = message.resource_spans if signal == "traces" else message.resource_logs
        resource = resources.add(schema_url="https://example.test")
        for count in scopes:
            groups = resource.scope_spans if signal == "traces" else resource.scope_logs
            scope = groups.add()
            scope.scope.name = "library"
            for _ in range(count):
                items = scope.spans if signal == "traces" else scope.log_records
                item = items.add(trace_id=bytes([number + 1]) * 16, span_id=b"12345678")
                item.attributes.add(key="secret").value.string_value = f"word-{number}-é"
                number += 1
    return message


def left(message: Any, signal: str = "traces") -> list[int]:
    resources = message.resource_spans if signal == "traces" else message.resource_logs
    return [
        item.trace_id[0] - 1
        for resource in resources
        for scope in (resource.scope_spans if signal == "traces" else resource.scope_logs)
        for item in (scope.spans if signal == "traces" else scope.log_records)
    ]


def left_resources(body: bytes, signal: str) -> int:
    message = decode(signal, "protobuf", body)  # type: ignore[arg-type]
    return len(message.resource_spans if signal == "traces" else message.resource_logs)


def total(shape: list[list[int]]) -> int:
    return sum(count for scopes in shape for count in scopes)


@settings(max_examples=200, deadline=None)
@given(SHAPES, st.sets(st.integers(0, 30)), st.sampled_from(["traces", "logs"]))
def test_protobuf_keeps_exactly_what_stays(
    shape: list[list[int]], going: set[int], signal: str
) -> None:
    body = request(shape, signal).SerializeToString()
    blanked = blank_protobuf(body, going.__contains__)
    assert len(blanked) == len(body)
    stays = [number for number in range(total(shape)) if number not in going]
    assert left(decode(signal, "protobuf", blanked), signal) == stays  # type: ignore[arg-type]
    for number in range(total(shape)):
        assert (f"word-{number}-".encode() in blanked) == (number in stays)
    if len(stays) == total(shape):
        assert blanked == body
    assert blank_protobuf(blanked, lambda _: False) == blanked
    assert is_blank(blanked, "protobuf") == (bool(shape) and not left_resources(blanked, signal))


@settings(max_examples=200, deadline=None)
@given(SHAPES, st.sets(st.integers(0, 30)), st.sampled_from(["traces", "logs"]), st.booleans())
def test_json_keeps_exactly_what_stays(
    shape: list[list[int]], going: set[int], signal: str, in_schema_names: bool
) -> None:
    message = request(shape, signal)
    document = MessageToDict(message, preserving_proto_field_name=in_schema_names)
    body = in_hex(document)
    blanked = blank_json(body, signal, going.__contains__)  # type: ignore[arg-type]
    assert len(blanked) == len(body)
    stays = [number for number in range(total(shape)) if number not in going]
    assert left(decode(signal, "json", blanked), signal) == stays  # type: ignore[arg-type]
    for number in range(total(shape)):
        assert (f"word-{number}-".encode() in blanked) == (number in stays)


@pytest.mark.parametrize("oddity", ["NaN", "-Infinity", '"\\ud800"'])
def test_json_that_only_python_reads_loses_what_goes(oddity: str) -> None:
    spans = ", ".join(
        f'{{"traceId": "{number + 1:02x}{"00" * 15}", "spanId": "{"01" * 8}", "x": {oddity}}}'
        for number in range(3)
    )
    body = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{spans}]}}]}}]}}'.encode()
    blanked = blank_json(body, "traces", {1}.__contains__)
    assert len(blanked) == len(body)
    assert left(decode("traces", "json", blanked)) == [0, 2]
    assert b"0200000" not in blanked
    assert blank_json(body, "traces", lambda _: True).strip() == b"{}"


def test_the_resource_of_what_went_goes_too() -> None:
    message = request([[2], [1]])
    message.resource_spans[0].resource.attributes.add(key="user").value.string_value = "somebody"
    body = message.SerializeToString()
    blanked = blank_protobuf(body, {0, 1}.__contains__)
    assert b"somebody" not in blanked
    assert left(ExportTraceServiceRequest.FromString(blanked)) == [2]
    assert b"somebody" in blank_protobuf(body, {0}.__contains__)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 100, 128, 129, 130, 131, 16_386, 16_387, 16_388])
def test_a_request_can_go_whole_whatever_its_size(size: int) -> None:
    for encoding in ("protobuf", "json"):
        blanked = blank_all(b"x" * size, encoding)  # type: ignore[arg-type]
        assert len(blanked) == size
        assert b"x" not in blanked
        if size > 1:
            assert is_blank(blanked, encoding)  # type: ignore[arg-type]
            assert left(decode("traces", encoding, blanked)) == []  # type: ignore[arg-type]


def test_unknown_fields_of_every_wire_type_are_stepped_over() -> None:
    body = request([[2]]).SerializeToString()
    unknown = bytes(
        [
            *(0xA0, 0x06, 0x96, 0x01),  # field 100, number
            *(0xA1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8),  # 64 bits
            *(0xA5, 0x06, 1, 2, 3, 4),  # 32 bits
            *(0xA3, 0x06, 0x08, 0x01, 0x12, 0x01, 0x41, 0xA4, 0x06),  # group
        ]
    )
    blanked = blank_protobuf(unknown + body + unknown, {0}.__contains__)
    assert blanked.startswith(unknown)
    assert blanked.endswith(unknown)
    assert left(ExportTraceServiceRequest.FromString(blanked)) == [1]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_bytes_that_are_no_request_are_refused_or_kept_in_size(body: bytes) -> None:
    try:
        assert len(blank_protobuf(body, lambda _: True)) == len(body)
    except ValueError as error:
        assert str(error)


def in_hex(document: Any) -> bytes:
    """As OTLP/JSON, which has hexadecimal ids."""

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            name: base64.b64decode(item).hex()
            if name in ("traceId", "spanId", "trace_id", "span_id")
            else walk(item)
            for name, item in value.items()
        }

    return json.dumps(walk(document), ensure_ascii=False, indent=1).encode()
