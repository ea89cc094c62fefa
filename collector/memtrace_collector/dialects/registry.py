"""All dialects together: OTLP requests -> facts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects import attributes as attr
from memtrace_collector.dialects import evaluation, genai_memory, memtrace
from memtrace_collector.dialects.attributes import Source
from memtrace_collector.dialects.evaluation import NO_THRESHOLDS, Thresholds
from memtrace_collector.graph.facts import SpanFacts
from memtrace_otel import semconv

_TRACE_ID_BYTES, _SPAN_ID_BYTES = 16, 8


def markers() -> tuple[bytes, ...]:
    """Byte strings of which a span must contain one to be worth decoding."""
    return (*memtrace.MARKERS, *genai_memory.MARKERS, *evaluation.MARKERS)


def read_span(
    span: Span, source: Source, thresholds: Thresholds = NO_THRESHOLDS
) -> SpanFacts | None:
    """Facts of one span; None when no dialect knows it."""
    if span.name in memtrace.OWN_SPANS:
        return None
    attributes = attr.decode(span.attributes)
    if semconv.MEMTRACE_CASE_ID in attributes:
        return None  # our own call to a model, for a verdict
    facts = memtrace.read_span(span, attributes, source)
    if facts is None:
        facts = genai_memory.read_span(span, attributes, source)
    flags = evaluation.event_flags(span, attributes, source, thresholds) if span.events else ()
    if flags:
        facts = facts or SpanFacts(tenant=source.tenant)
        facts = structs.replace(facts, flags=(*facts.flags, *flags))
    if facts is not None and not _identified(span):
        return SpanFacts(tenant=source.tenant, problems=("span without valid ids",))
    return facts


def read_request(
    tenant: str, request: ExportTraceServiceRequest, thresholds: Thresholds = NO_THRESHOLDS
) -> Iterator[SpanFacts]:
    """Facts of every span of a trace export request that a dialect knows, in its order."""
    for resource_spans in request.resource_spans:
        resource = attr.decode(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            source = Source(tenant, resource, scope_spans.scope.name)
            for span in scope_spans.spans:
                facts = read_span(span, source, thresholds)
                if facts is not None:
                    yield facts


def read_logs(
    tenant: str, request: ExportLogsServiceRequest, thresholds: Thresholds = NO_THRESHOLDS
) -> Iterator[SpanFacts]:
    """Flags from the evaluation records of a log export request, in its order."""
    for resource_logs in request.resource_logs:
        resource = attr.decode(resource_logs.resource.attributes)
        for scope_logs in resource_logs.scope_logs:
            source = Source(tenant, resource, scope_logs.scope.name)
            for record in scope_logs.log_records:
                facts = evaluation.read_log(record, source, thresholds)
                if facts is not None:
                    yield facts


def _identified(span: Span) -> bool:
    return (
        len(span.trace_id) == _TRACE_ID_BYTES
        and len(span.span_id) == _SPAN_ID_BYTES
        and any(span.trace_id)
        and any(span.span_id)
    )
