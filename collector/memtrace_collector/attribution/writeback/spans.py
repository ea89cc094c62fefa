"""What every span that is written back is made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from memtrace_collector.attribution.writeback import sizes
from memtrace_collector.graph.facts import OperationKey
from memtrace_otel import semconv

SERVICE = "memtrace"
"""Service of a case. Its hops, and what is put into other traces, bear that of the operation they
speak of."""
INSTANT_NS = 1_000
"""How long a span is that says something about a moment. Jaeger changes one that ends when it
starts, and then shows a second delivery of it as another span."""
SCOPE = InstrumentationScope(name=SERVICE)


def link(key: OperationKey) -> Span.Link:
    return Span.Link(trace_id=bytes.fromhex(key.trace_id), span_id=bytes.fromhex(key.span_id))


def status(is_error: bool, message: str) -> Status:
    """Unset unless it is an error."""
    if not is_error:
        return Status()
    return Status(code=Status.STATUS_CODE_ERROR, message=sizes.clipped(message, sizes.MAX_BYTES))


def resource(service: str) -> Resource:
    name = sizes.clipped(service, sizes.MAX_SEARCHABLE_BYTES) or SERVICE
    return Resource(attributes=sizes.attributes({semconv.SERVICE_NAME: name}))


def trace_request(spans: Mapping[str, Iterable[Span]]) -> bytes:
    """An OTLP export request with the spans of each service."""
    request = ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=resource(service), scope_spans=[ScopeSpans(scope=SCOPE, spans=of_it)]
            )
            for service, of_it in spans.items()
        ]
    )
    payload: bytes = request.SerializeToString(deterministic=True)
    return payload


def rfc3339(time_ns: int) -> str:
    """With milliseconds, in UTC."""
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, tz=timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns % 1_000_000_000 // 1_000_000:03d}Z"
