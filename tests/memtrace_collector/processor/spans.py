"""Export requests with memory spans, written out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.graph.facts import OperationKey
from memtrace_otel import semconv

SECOND = 1_000_000_000
START = 1_767_225_600 * SECOND


def trace_id(number: int) -> str:
    return f"{number:032x}"


def span_id(number: int) -> str:
    return f"{number:016x}"


def key(trace: int, span: int) -> OperationKey:
    return OperationKey(trace_id(trace), span_id(span))


def attribute(name: str, value: str) -> KeyValue:
    return KeyValue(key=name, value=AnyValue(string_value=value))


def plain_span(trace: int, number: int, **attributes: str) -> Span:
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return Span(
        trace_id=bytes.fromhex(trace_id(trace)),
        span_id=bytes.fromhex(span_id(number)),
        name="GET /",
        start_time_unix_nano=START + trace * SECOND,
        end_time_unix_nano=START + trace * SECOND + 1,
        attributes=[attribute(name, value) for name, value in named.items()],
    )


def memory_span(
    trace: int,
    number: int,
    step: str,
    *,
    parent: int = 0,
    graph: str = "g",
    values: Mapping[str, str] | None = None,
    links: Iterable[tuple[OperationKey, str]] = (),
    **lineage: object,
) -> Span:
    span = plain_span(trace, number)
    span.name = semconv.SPAN_NAMES[step]
    span.start_time_unix_nano += number * 1000
    span.end_time_unix_nano = span.start_time_unix_nano + 500
    if parent:
        span.parent_span_id = bytes.fromhex(span_id(parent))
    span.attributes.extend(
        [
            attribute(semconv.MEMTRACE_STEP, step),
            attribute(semconv.MEMTRACE_GRAPH_ID, graph),
            attribute(semconv.MEMTRACE_LINEAGE, json.dumps({**lineage, "key": "plain"})),
        ]
    )
    if values:
        span.attributes.append(attribute(semconv.MEMTRACE_VALUES, json.dumps(values)))
    for target, relation in links:
        link = span.links.add(
            trace_id=bytes.fromhex(target.trace_id), span_id=bytes.fromhex(target.span_id)
        )
        link.attributes.append(attribute(semconv.LINK_RELATION, relation))
    return span


def request(*spans: Span, service: str = "agent") -> ExportTraceServiceRequest:
    message = ExportTraceServiceRequest()
    resource = message.resource_spans.add()
    resource.resource.attributes.append(attribute(semconv.SERVICE_NAME, service))
    resource.scope_spans.add(spans=spans)
    return message


def all_spans(message: ExportTraceServiceRequest) -> list[Span]:
    return [
        span
        for resource in message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def relations(span: Span) -> dict[OperationKey, str]:
    found = {}
    for link in span.links:
        (relation,) = [
            item.value.string_value for item in link.attributes if item.key == semconv.LINK_RELATION
        ]
        found[OperationKey(link.trace_id.hex(), link.span_id.hex())] = relation
    return found


def names(span: Span) -> set[str]:
    return {item.key for item in span.attributes}
