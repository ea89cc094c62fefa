"""A judgement as a span of an exported case: the label of a case. Pure.

The span carries what the person said and one link, to the answer; whoever imports the case takes
it for no operation and no flag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.judging.judged import HUMAN
from memtrace_collector.graph.questions.shapes import time_ns
from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_otel import semconv

SERVICE_NAME = "memtrace-otel"


def request(verdict: Mapping[str, Any]) -> ExportTraceServiceRequest:
    """An OTLP trace request with the judgement of a judged verdict (JSON form)."""
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.extend(encode({semconv.SERVICE_NAME: SERVICE_NAME}))
    resource.scope_spans.add(spans=[_span(verdict)]).scope.name = SERVICE_NAME
    return made


def _span(verdict: Mapping[str, Any]) -> Span:
    said, answer = verdict["judgement"], verdict["answer"]
    ids = hashlib.sha256(f"judgement\0{verdict['id']}\0{verdict['revision']}".encode()).digest()
    at_ns = time_ns(said["at"]) or 0
    attributes: dict[str, AttributeValue | None] = {
        semconv.MEMTRACE_CASE_ID: verdict["id"],
        semconv.MEMTRACE_GRAPH_ID: verdict["graph_id"],
        semconv.MEMTRACE_ANSWER_TRACE_ID: answer["traceId"],
        semconv.MEMTRACE_ANSWER_SPAN_ID: answer["spanId"],
        semconv.MEMTRACE_ATTRIBUTION_STAGE: verdict["stage"],
        semconv.MEMTRACE_ATTRIBUTION_TYPE: verdict["error_type"],
        semconv.MEMTRACE_ATTRIBUTION_METHOD: HUMAN,
        semconv.MEMTRACE_ATTRIBUTION_REVISION: said["revision"],
        semconv.MEMTRACE_JUDGEMENT_AGREEMENT: said["agreement"],
        semconv.MEMTRACE_JUDGEMENT_DECISIVE: [
            f"{each['traceId']}:{each['spanId']}" for each in verdict["decisive"]
        ],
        semconv.MEMTRACE_JUDGEMENT_LAST_RIGHT: verdict["last_right"],
        semconv.MEMTRACE_JUDGEMENT_FIRST_WRONG: verdict["first_wrong"],
        semconv.MEMTRACE_JUDGEMENT_BY: said["by"] or None,
        semconv.MEMTRACE_JUDGEMENT_NOTE: said["note"] or None,
    }
    link = Span.Link(
        trace_id=bytes.fromhex(answer["traceId"]),
        span_id=bytes.fromhex(answer["spanId"]),
        attributes=encode({semconv.LINK_RELATION: semconv.RELATION_EVALUATES}),
    )
    return Span(
        trace_id=ids[:16],
        span_id=ids[16:24],
        name=semconv.SPAN_JUDGEMENT,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=at_ns,
        end_time_unix_nano=at_ns,
        attributes=encode(attributes),
        links=[link],
    )
