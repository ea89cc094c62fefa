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
from memtrace_collector.otlp.identity import are_valid_ids
from memtrace_collector.otlp.slices import Slices, scope_view, span_view
from memtrace_otel import semconv


def markers() -> tuple[bytes, ...]:
    """How keys of attributes begin, of which a span must have one to be worth decoding."""
    return (*memtrace.MARKERS, *genai_memory.MARKERS, *evaluation.MARKERS)


def read_span(
    span: Span, source: Source, thresholds: Thresholds = NO_THRESHOLDS
) -> SpanFacts | None:
    """Facts of one span; None when no dialect knows it."""
    facts = read_slice(span.SerializeToString(), source, thresholds)
    if facts is not None and not are_valid_ids(span):
        return SpanFacts(tenant=source.tenant, problems=("span without valid ids",))
    return facts


def read_slice(
    data: bytes, source: Source, thresholds: Thresholds = NO_THRESHOLDS
) -> SpanFacts | None:
    """Facts of the span in these bytes, whose ids are valid; None when no dialect knows it.

    Raises:
        DecodeError: they are no span.
    """
    span = span_view(data)
    if span.name in memtrace.OWN_SPANS or semconv.MEMTRACE_CASE_ID in span.attributes:
        return None  # a verdict, or our own call to a model for one
    facts = memtrace.read_span(span, data, source)
    if facts is None:
        facts = genai_memory.read_span(span, data, source)
    flags = evaluation.event_flags(span, source, thresholds) if span.events else ()
    if flags:
        facts = facts or SpanFacts(tenant=source.tenant)
        facts = structs.replace(facts, flags=(*facts.flags, *flags))
    return facts


def read_request(
    tenant: str, request: ExportTraceServiceRequest, thresholds: Thresholds = NO_THRESHOLDS
) -> Iterator[SpanFacts]:
    """Facts of every span of a trace export request that a dialect knows, in its order."""
    for group in request.resource_spans:
        resource = attr.resource_attributes(group.resource.SerializeToString())
        for scope in group.scope_spans:
            source = Source(tenant, resource, scope.scope.name)
            for span in scope.spans:
                facts = read_span(span, source, thresholds)
                if facts is not None:
                    yield facts


def source_of(tenant: str, scope: Slices) -> Source:
    """Where the spans of a scope come from.

    Raises:
        DecodeError: resource or scope are none.
    """
    return Source(tenant, attr.resource_attributes(scope.resource), scope_view(scope.scope).name)


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
