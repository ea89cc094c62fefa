"""The exporters that users have, against the real server."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from memtrace_collector.receiver.decode import decode_traces

EXPORTERS: dict[str, Callable[..., SpanExporter]] = {
    "grpc": lambda receiver: GrpcExporter(receiver.grpc, insecure=True),
    "grpc, gzip": lambda receiver: GrpcExporter(
        receiver.grpc, insecure=True, compression=grpc.Compression.Gzip
    ),
    "http": lambda receiver: HttpExporter(f"{receiver.http}/v1/traces"),
    "http, gzip": lambda receiver: HttpExporter(
        f"{receiver.http}/v1/traces", compression=Compression.Gzip
    ),
}


@pytest.mark.fault("F18")
@pytest.mark.otlp_rule("C1", "C2")
@pytest.mark.parametrize("kind", EXPORTERS)
def test_every_span_that_the_sdk_exports_is_in_the_log_once(receiver, kind: str) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(EXPORTERS[kind](receiver)))
    tracer = provider.get_tracer("test")
    sent = set()
    for number in range(1500):
        with tracer.start_as_current_span("s", attributes={"text": "ä" * 50, "n": number}) as span:
            sent.add(span.get_span_context().span_id)
    assert provider.force_flush(20_000)
    provider.shutdown()
    found = [
        int.from_bytes(span.span_id, "big")
        for record in receiver.records()
        for resource in decode_traces(record).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert len(found) == len(set(found))
    assert set(found) == sent
