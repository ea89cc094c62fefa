"""Requests are cut into spans that stay as they came; only what is asked for is decoded."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects.attributes import SpanAttributes, decode, resource_attributes
from memtrace_collector.otlp.attributes import encode
from memtrace_collector.otlp.identity import are_valid_ids, has_valid_ids
from memtrace_collector.otlp.markers import Markers
from memtrace_collector.otlp.slices import sliced, span_view, split

UNKNOWN = b"\xfa\x07\x03new"
"""Field 127 with three bytes, which no version of OTLP has."""


def span(number: int, **attributes: str | bool | int | float | list[str]) -> Span:
    return Span(
        trace_id=number.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        name=f"span {number}",
        start_time_unix_nano=number,
        flags=0xFFFFFF01,
        trace_state="vendor=1",
        attributes=encode({name.replace("__", "."): value for name, value in attributes.items()}),
    )


def request() -> ExportTraceServiceRequest:
    message = ExportTraceServiceRequest()
    for service in ("one", "two"):
        group = message.resource_spans.add(schema_url="https://example.test/1")
        group.resource.attributes.extend(encode({"service.name": service}))
        for number in (1, 2):
            scope = group.scope_spans.add(spans=[span(number), span(number + 10, a="b")])
            scope.scope.name = f"{service}.{number}"
    return message


@pytest.mark.otlp_rule("C29", "C36")
def test_a_request_that_nobody_touches_is_serialised_to_the_same_bytes() -> None:
    body = request().SerializeToString()
    assert sliced(body).SerializeToString() == body
    spans = [span(1).SerializeToString() + UNKNOWN, span(2).SerializeToString()]
    cut = sliced(body)
    scope = next(iter(split(cut)))
    del scope.spans[:]
    scope.spans.extend(spans)
    again = next(iter(split(sliced(cut.SerializeToString() + UNKNOWN))))
    assert list(again.spans) == spans


def test_the_slices_are_the_spans_with_their_resource_and_scope() -> None:
    message = request()
    found = list(split(sliced(message.SerializeToString())))
    expected = [(group, scope) for group in message.resource_spans for scope in group.scope_spans]
    assert len(found) == len(expected) == 4
    for slices, (group, scope) in zip(found, expected):
        assert slices.resource == group.resource.SerializeToString()
        assert slices.scope == scope.scope.SerializeToString()
        assert list(slices.spans) == [item.SerializeToString() for item in scope.spans]


def test_a_resource_that_came_in_two_parts_is_one() -> None:
    parts = [Resource(attributes=encode({name: "x"})).SerializeToString() for name in ("a", "b")]
    group = b"".join(b"\x0a" + bytes([len(part)]) + part for part in parts) + b"\x12\x00"
    body = b"\x0a" + bytes([len(group)]) + group
    (slices,) = split(sliced(body))
    assert resource_attributes(slices.resource) == {"a": "x", "b": "x"}
    assert sliced(body).SerializeToString() == body


@pytest.mark.otlp_rule("C34", "C35")
def test_a_view_has_the_attributes_of_the_span_and_the_last_of_a_repeated_key() -> None:
    whole = span(7, a="text", b=True, c=5, d=0.5, e=["x", "y"])
    whole.attributes.extend(encode({"a": "last"}))
    view = span_view(whole.SerializeToString())
    attributes = SpanAttributes(view.attributes)
    assert attributes.decoded() == decode(whole.attributes)
    assert attributes.text("a") == "last" and attributes.text("c") == ""
    assert attributes.is_true("b") and not attributes.is_true("c")
    assert attributes.get("e") == ["x", "y"] and attributes.get("nothing") is None
    assert "nothing" not in attributes
    assert (view.trace_id, view.name, view.start_time_unix_nano) == (
        whole.trace_id,
        whole.name,
        whole.start_time_unix_nano,
    )


@pytest.mark.parametrize("body", [b"\x0a", b"\x0a\x05\x12", b"\x0a\x03\x12\x05\x0a"])
def test_what_is_no_request_is_a_decode_error(body: bytes) -> None:
    with pytest.raises(DecodeError):
        sliced(body)


MARKERS = Markers([b"memtrace.", b"gen_ai.evaluation."])


def test_a_key_is_a_marker_and_a_mention_is_none() -> None:
    assert MARKERS.in_protobuf(span(1, memtrace__step="add").SerializeToString())
    mentioned = span(1, said="what is memtrace. and gen_ai.evaluation. good for?")
    assert not MARKERS.in_protobuf(mentioned.SerializeToString())
    assert not MARKERS.in_protobuf(span(1, other="x").SerializeToString())


def test_a_marker_on_an_event_counts_and_a_length_may_take_several_bytes() -> None:
    evaluated = span(1)
    evaluated.events.add(attributes=encode({"gen_ai.evaluation.name": "x"}))
    assert MARKERS.in_protobuf(evaluated.SerializeToString())
    long = span(1, **{f"memtrace__{'x' * 300}": "y"})
    assert MARKERS.in_protobuf(long.SerializeToString())
    assert MARKERS.in_protobuf(b"\x0a\x8d\x80\x00memtrace.step")


def test_without_markers_nothing_is_ours() -> None:
    assert not Markers([]).in_protobuf(span(1, memtrace__step="add").SerializeToString())
    assert not Markers([]).in_json(b'"memtrace.step"')
    assert MARKERS.in_json(b'{"key":"memtrace.step"}')


IDS = st.one_of(st.sampled_from([b"", bytes(8), bytes(16)]), st.binary(max_size=20))


@pytest.mark.otlp_rule("C33")
@given(IDS, IDS, IDS, st.sampled_from(["", "name"]))
def test_ids_are_judged_alike_in_bytes_and_decoded(
    trace_id: bytes, span_id: bytes, parent: bytes, name: str
) -> None:
    made = Span(trace_id=trace_id, span_id=span_id, parent_span_id=parent, name=name)
    assert has_valid_ids(made.SerializeToString()) == are_valid_ids(made)
    wellformed = (len(trace_id), len(span_id)) == (16, 8) and len(parent) in (0, 8)
    assert are_valid_ids(made) == (wellformed and any(trace_id) and any(span_id))


@pytest.mark.parametrize("parent", [b"", b"\x03" * 8])
@pytest.mark.parametrize("last", [0, 1])
def test_the_usual_beginning_of_a_span_is_judged_right(parent: bytes, last: int) -> None:
    made = Span(
        trace_id=bytes(15) + bytes([last]), span_id=b"\x01" * 8, parent_span_id=parent, name="x"
    )
    assert has_valid_ids(made.SerializeToString()) is bool(last)
