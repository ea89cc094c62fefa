from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.log.format import Encoding, LogRecord, Signal
from memtrace_collector.receiver.decode import (
    InvalidRequestError,
    decode,
    decode_logs,
    decode_traces,
)
from memtrace_collector.receiver.validate import check

VECTORS = Path(__file__).parents[2] / "contract" / "vectors"
TRACE_ID = "5B8EFFF798038103D269B633813FC60C"
SPAN_ID = "eee19b7ec3c1b174"


def span_json(**fields: object) -> bytes:
    span = {"traceId": TRACE_ID, "spanId": SPAN_ID, "name": "s", **fields}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def only_span(body: bytes) -> object:
    return decode("traces", "json", body).resource_spans[0].scope_spans[0].spans[0]


def record(signal: Signal, encoding: Encoding, body: bytes) -> LogRecord:
    return LogRecord("default", 0, signal, encoding, body)


@pytest.mark.otlp_rule("C27")
def test_ids_are_hexadecimal_in_either_case_also_in_links() -> None:
    span = only_span(
        span_json(
            parentSpanId=SPAN_ID.upper(),
            links=[{"traceId": TRACE_ID.lower(), "spanId": SPAN_ID}],
        )
    )
    assert span.trace_id == bytes.fromhex(TRACE_ID)
    assert span.span_id == span.parent_span_id == bytes.fromhex(SPAN_ID)
    assert span.links[0].trace_id == bytes.fromhex(TRACE_ID)
    assert span.links[0].span_id == bytes.fromhex(SPAN_ID)


@pytest.mark.otlp_rule("C31")
def test_64_bit_integers_come_as_numbers_or_strings() -> None:
    span = only_span(
        span_json(
            startTimeUnixNano="1544712660000000001",
            endTimeUnixNano=1544712660000000002,
            attributes=[
                {"key": "a", "value": {"intValue": "-9223372036854775808"}},
                {"key": "b", "value": {"intValue": 7}},
            ],
        )
    )
    assert span.start_time_unix_nano == 1544712660000000001
    assert span.end_time_unix_nano == 1544712660000000002
    assert [item.value.int_value for item in span.attributes] == [-(2**63), 7]


@pytest.mark.otlp_rule("C30", "C32", "C34")
def test_every_kind_of_attribute_value_is_read() -> None:
    values = [
        {"stringValue": "ä\ud83d\ude00"},
        {"boolValue": False},
        {"doubleValue": 1},
        {"doubleValue": "NaN"},
        {"bytesValue": base64.b64encode(b"\x00\xff").decode()},
        {"arrayValue": {"values": [{"intValue": 1}, {}]}},
        {"array_value": {"values": []}},
        {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}},
        {},
    ]
    span = only_span(span_json(attributes=[{"key": "k", "value": value} for value in values]))
    kinds = [item.value.WhichOneof("value") for item in span.attributes]
    assert kinds == [
        "string_value", "bool_value", "double_value", "double_value", "bytes_value",
        "array_value", "array_value", "kvlist_value", None,
    ]  # fmt: skip
    assert span.attributes[4].value.bytes_value == b"\x00\xff"


@pytest.mark.otlp_rule("C29")
def test_unknown_fields_and_nulls_are_ignored() -> None:
    span = only_span(span_json(nonsense={"a": [1, {}]}, parentSpanId=None, kind=2))
    assert span.kind == 2
    assert span.parent_span_id == b""


@pytest.mark.fault("F31")
def test_lone_surrogates_become_replacement_characters() -> None:
    assert only_span(span_json(name="a\ud800b")).name == "a\ufffdb"


@pytest.mark.otlp_rule("C20", "C28")
@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'"resourceSpans"',
        b'{"resourceSpans": {}}',
        b'{"resourceSpans": [1]}',
        span_json(kind="SPAN_KIND_SERVER"),
        span_json(kind=True),
        span_json(name=5),
        span_json(startTimeUnixNano=-1),
        span_json(startTimeUnixNano=2**64),
        span_json(startTimeUnixNano="soon"),
        span_json(startTimeUnixNano=1.5),
        span_json(attributes=[{"key": "a", "value": {"boolValue": "true"}}]),
        span_json(attributes=[{"key": "a", "value": {"bytesValue": "?"}}]),
        b'{"resourceSpans": ' + b"9" * 5000 + b"}",
    ],
)
def test_malformed_json_is_an_invalid_request(body: bytes) -> None:
    with pytest.raises(InvalidRequestError):
        decode("traces", "json", body)


def nested(levels: int) -> bytes:
    value: dict[str, object] = {"stringValue": "x"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return span_json(attributes=[{"key": "a", "value": value}])


@pytest.mark.fault("F31")
def test_json_may_nest_as_deeply_as_protobuf_and_no_deeper() -> None:
    accepted = 0
    for levels in range(30, 60):
        try:
            request = decode("traces", "json", nested(levels))
        except InvalidRequestError:
            break
        ExportTraceServiceRequest.FromString(request.SerializeToString())
        accepted = levels
    assert accepted > 40
    deeper = ExportTraceServiceRequest()
    value = deeper.resource_spans.add().scope_spans.add().spans.add().attributes.add().value
    for _ in range(accepted + 2):
        value = value.array_value.values.add()
    with pytest.raises(DecodeError):
        ExportTraceServiceRequest.FromString(deeper.SerializeToString())


@pytest.mark.fault("F31")
@pytest.mark.parametrize("levels", [101, 200, 10_000, 1_000_000])
def test_hostile_nesting_is_an_invalid_request(levels: int) -> None:
    for body in (b"[" * levels, b'{"a":' * levels, b'{"resourceSpans":' + b"[" * levels):
        with pytest.raises(InvalidRequestError):
            decode("traces", "json", body)
    if levels <= 200:
        with pytest.raises(InvalidRequestError):
            decode("traces", "json", nested(levels))


def test_the_contract_vectors_read_alike_as_json_and_as_protobuf() -> None:
    for path in sorted(VECTORS.glob("*.otlp.json")):
        request = decode_traces(record("traces", "json", path.read_bytes()))
        spans = [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
        assert spans, path
        checked = check("traces", request)
        assert (checked.items, checked.rejected) == (len(spans), 0)
        binary = record("traces", "protobuf", request.SerializeToString())
        assert decode_traces(binary) == request


@pytest.mark.otlp_rule("C14", "C33")
@pytest.mark.parametrize(
    "ids",
    [
        {"traceId": "00" * 16},
        {"spanId": "00" * 8},
        {"traceId": "xyz"},
        {"traceId": "ab"},
        {"spanId": ""},
        {"parentSpanId": "not hex"},
        {"parentSpanId": "abcd"},
    ],
)
def test_a_span_with_a_bad_id_costs_only_itself(ids: dict[str, str]) -> None:
    good = json.loads(span_json())
    bad = json.loads(span_json(**ids))
    spans = good["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans += bad["resourceSpans"][0]["scopeSpans"][0]["spans"]
    body = json.dumps(good).encode()
    checked = check("traces", decode("traces", "json", body))
    assert (checked.items, checked.rejected, checked.accepted) == (2, 1, 1)
    kept = decode_traces(record("traces", "json", body)).resource_spans[0].scope_spans[0].spans
    assert [span.trace_id for span in kept] == [bytes.fromhex(TRACE_ID)]


def logs_request() -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    logs = request.resource_logs.add().scope_logs.add().log_records
    logs.add(time_unix_nano=1, body={"string_value": "with a time"})
    logs.add(body={"string_value": "no time at all"})
    logs.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, observed_time_unix_nano=2)
    return request


def test_log_records_need_no_time_and_no_ids() -> None:
    request = logs_request()
    assert check("logs", request).rejected == 0
    binary = record("logs", "protobuf", request.SerializeToString())
    assert decode_logs(binary) == request


@pytest.mark.otlp_rule("C33")
def test_a_payload_of_the_wrong_signal_is_refused_item_by_item() -> None:
    spans = decode("traces", "json", span_json(startTimeUnixNano="5", name="")).SerializeToString()
    as_logs = check("logs", decode("logs", "protobuf", spans))
    assert (as_logs.items, as_logs.rejected) == (1, 1)
    logs = logs_request()
    del logs.resource_logs[0].scope_logs[0].log_records[2:]
    as_spans = check("traces", decode("traces", "protobuf", logs.SerializeToString()))
    assert (as_spans.items, as_spans.rejected) == (2, 2)


@pytest.mark.otlp_rule("C13")
@pytest.mark.parametrize("signal", ["traces", "logs"])
@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_an_empty_body_is_an_empty_request(signal: Signal, encoding: Encoding) -> None:
    assert check(signal, decode(signal, encoding, b"")).items == 0
