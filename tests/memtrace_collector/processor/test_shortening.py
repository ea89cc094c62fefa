"""Texts that a destination would refuse for their length."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects import packed_json
from memtrace_collector.processor.shortening import NAME_BYTES, shorten
from tests.memtrace_collector.processor.spans import attribute, memory_span, plain_span, request

LONGEST = 10_000
LONG = "é" * LONGEST
REFERENCES = [f"mem:långt/{number}@{'0' * 16}" for number in range(1_000)]


def _shortened(*spans: Span) -> tuple[list[Span], int]:
    body, count = shorten(request(*spans).SerializeToString(), LONGEST)
    (group,) = ExportTraceServiceRequest.FromString(body).resource_spans
    return list(group.scope_spans[0].spans), count


def _texts(span: Span) -> dict[str, str]:
    return {item.key: item.value.string_value for item in span.attributes}


def test_a_split_lineage_is_read_as_it_was() -> None:
    (span,), count = _shortened(memory_span(1, 1, "ingest", outputs=REFERENCES))
    assert count == 1
    assert max(len(text.encode()) for text in _texts(span).values()) <= LONGEST
    packed = packed_json.read(_texts(span), "memtrace.lineage")
    assert packed is not None and packed.complete
    assert packed.data["outputs"] == REFERENCES


def test_a_lineage_that_came_in_parts_keeps_each_in_its_place() -> None:
    lineage = json.dumps({"outputs": REFERENCES})
    span = plain_span(1, 1, memtrace__lineage=lineage, memtrace__lineage__1="1", a="b")
    (kept,), count = _shortened(span)
    assert count == 1
    assert list(_texts(kept)) == ["memtrace.lineage", "memtrace.lineage.1", "a"]
    packed = packed_json.read(_texts(kept), "memtrace.lineage")
    assert packed is not None and not packed.complete
    outputs = packed.data["outputs"]
    assert isinstance(outputs, list) and outputs[:99] == REFERENCES[:99]


def test_of_any_other_text_the_beginning_goes_on() -> None:
    span = plain_span(1, 1, said=LONG, short="as it is")
    span.name = LONG
    span.status.message = LONG
    span.trace_state = LONG
    event = span.events.add(name=LONG)
    event.attributes.append(attribute("said", LONG))
    (kept,), count = _shortened(span)
    assert count == 6
    texts = (kept.name, kept.status.message, kept.trace_state, _texts(kept)["said"])
    beginning = "é" * ((LONGEST - 3) // 2) + "…"
    assert set(texts) == {beginning}
    assert (kept.events[0].name, kept.events[0].attributes[0].value.string_value) == texts[:2]
    assert _texts(kept)["short"] == "as it is"


@pytest.mark.parametrize(
    "value",
    [
        AnyValue(bytes_value=b"\xff" * (LONGEST // 2 + 1)),
        AnyValue(array_value=ArrayValue(values=[AnyValue(string_value="\x01" * 2_000)])),
    ],
    ids=["bytes", "list"],
)
def test_what_is_longer_once_it_is_written_as_text_counts_as_that(value: AnyValue) -> None:
    span = plain_span(1, 1)
    span.attributes.append(KeyValue(key="said", value=value))
    (kept,), count = _shortened(span)
    assert count == 1
    assert len(_texts(kept)["said"].encode()) <= LONGEST


def test_names_leave_room_for_the_value_beside_them() -> None:
    message = request(plain_span(1, 1, **{"n" * 5_000: "said"}))
    (group,) = message.resource_spans
    group.resource.attributes.append(attribute("service.name", LONG))
    body, count = shorten(message.SerializeToString(), LONGEST)
    (group,) = ExportTraceServiceRequest.FromString(body).resource_spans
    assert count == 2
    assert len(group.resource.attributes[-1].value.string_value.encode()) <= NAME_BYTES
    (item,) = group.scope_spans[0].spans[0].attributes
    assert (len(item.key.encode()), item.value.string_value) == (NAME_BYTES, "said")


def test_a_span_beside_a_long_one_stays_byte_for_byte() -> None:
    # an unknown field, which a rewritten span would keep in another place
    beside = b"\xfa\x3e\x03new" + plain_span(1, 2, said="x" * 5_000).SerializeToString()
    message = request(plain_span(1, 1, said=LONG))
    message.resource_spans[0].scope_spans[0].spans.append(Span.FromString(beside))
    body, count = shorten(message.SerializeToString(), LONGEST)
    assert count == 1
    assert Span.FromString(beside).SerializeToString() in body


def test_a_request_without_long_texts_stays_byte_for_byte() -> None:
    body = request(plain_span(1, 1, said="é" * (LONGEST // 2))).SerializeToString()
    assert shorten(body, LONGEST) == (body, 0)
