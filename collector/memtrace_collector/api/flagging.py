"""A flag set here enters like any other: as a `memtrace.flag` span, through the log. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_otel import canonical_json, semconv

SERVICE_NAME = "memtrace-otel"
SOURCE = "operator"


def flag_request(
    answer: OperationKey,
    now_ns: int,
    *,
    expected: str | None = None,
    evidence: Sequence[str] = (),
    reason: str = "",
    source: str = SOURCE,
) -> bytes:
    """An OTLP trace request (protobuf) that flags ``answer``.

    The span's ids derive from what it says: saying it again is the same flag.
    """
    ids = flag_key(answer, expected=expected, evidence=evidence, reason=reason)
    attributes: dict[str, AttributeValue | None] = {
        semconv.MEMTRACE_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
        semconv.MEMTRACE_STEP: semconv.STEP_FLAG,
        semconv.MEMTRACE_FLAG_TRACE_ID: answer.trace_id,
        semconv.MEMTRACE_FLAG_SPAN_ID: answer.span_id,
        semconv.MEMTRACE_FLAG_SOURCE: source or SOURCE,
        semconv.MEMTRACE_FLAG_REASON: reason or None,
        semconv.MEMTRACE_EXPECTED: expected,
        semconv.MEMTRACE_EVIDENCE: list(evidence) or None,
    }
    span = Span(
        trace_id=bytes.fromhex(ids.trace_id),
        span_id=bytes.fromhex(ids.span_id),
        name=semconv.SPAN_NAMES[semconv.STEP_FLAG],
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=now_ns,
        end_time_unix_nano=now_ns,
        attributes=encode(attributes),
        links=[_link(answer)],
    )
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(encode({semconv.SERVICE_NAME: SERVICE_NAME}))
    resource.scope_spans.add(spans=[span]).scope.name = SERVICE_NAME
    return bytes(request.SerializeToString())


def flag_key(
    answer: OperationKey,
    *,
    expected: str | None = None,
    evidence: Sequence[str] = (),
    reason: str = "",
) -> OperationKey:
    """The ids of the span that :func:`flag_request` makes."""
    said = canonical_json.dumps([*answer, expected, list(evidence), reason])
    digest = hashlib.sha256(f"memtrace.flag {said}".encode("utf-8", "replace")).hexdigest()
    return OperationKey(digest[:32], digest[32:48])


def _link(answer: OperationKey) -> Span.Link:
    return Span.Link(
        trace_id=bytes.fromhex(answer.trace_id),
        span_id=bytes.fromhex(answer.span_id),
        attributes=encode({semconv.LINK_RELATION: semconv.RELATION_FLAGS}),
    )
