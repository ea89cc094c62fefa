"""A judgement as a span of an exported case, and back: the label of a case. Pure.

The span carries what the person said and one link, to the answer; whoever imports the case takes
it for no operation and no flag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.judging.judged import HUMAN
from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.dialects import attributes as attr
from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.graph.questions.shapes import is_span, parse_answer, time_ns
from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_otel import semconv

SERVICE_NAME = "memtrace-otel"


class Label(NamedTuple):
    """What a person said of a case."""

    case_id: str
    answer: OperationKey
    error_type: str
    decisive: tuple[OperationKey, ...]


def request(verdict: Mapping[str, Any]) -> ExportTraceServiceRequest:
    """An OTLP trace request with the judgement of a judged verdict (JSON form)."""
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.extend(encode({semconv.SERVICE_NAME: SERVICE_NAME}))
    resource.scope_spans.add(spans=[_span(verdict)]).scope.name = SERVICE_NAME
    return made


def labels(request: ExportTraceServiceRequest) -> list[Label]:
    """Every label of a request; a span that does not say a whole judgement is none."""
    spans = (
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        if span.name == semconv.SPAN_JUDGEMENT
    )
    read = (_label(attr.decode(span.attributes)) for span in spans)
    return [label for label in read if label is not None]


def _span(verdict: Mapping[str, Any]) -> Span:
    said, answer = verdict["judgement"], verdict["answer"]
    ids = hashlib.sha256(f"judgement\0{verdict['id']}\0{verdict['revision']}".encode()).digest()
    at_ns = time_ns(said["at"]) or 0
    attributes: dict[str, AttributeValue | None] = {
        semconv.MEMTRACE_CASE_ID: verdict["id"],
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


def _label(told: attr.Attributes) -> Label | None:
    error_type = attr.text(told, semconv.MEMTRACE_ATTRIBUTION_TYPE)
    answer = ":".join(
        attr.text(told, name)
        for name in (semconv.MEMTRACE_ANSWER_TRACE_ID, semconv.MEMTRACE_ANSWER_SPAN_ID)
    )
    decisive = attr.texts(told, semconv.MEMTRACE_JUDGEMENT_DECISIVE)
    if error_type not in STAGE_OF or not all(map(is_span, (answer, *decisive))):
        return None
    return Label(
        case_id=attr.text(told, semconv.MEMTRACE_CASE_ID),
        answer=parse_answer(answer),
        error_type=error_type,
        decisive=tuple(map(parse_answer, decisive)),
    )
