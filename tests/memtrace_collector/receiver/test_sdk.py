"""The exporters that users have, against the real server."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from memtrace_collector.log.errors import LogOverloadedError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.receiver.decode import decode_traces
from memtrace_collector.receiver.ingest import Ingest
from tests.receivers import Receiver, serving

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


@pytest.mark.otlp_rule("C21", "C23")
@pytest.mark.fault("F18", "F21")
@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_what_is_refused_for_now_comes_again_within_the_sdk_s_ten_seconds(
    kind: str, tmp_path: Path
) -> None:
    refused = []

    def append(record: LogRecord) -> Future[LogPosition]:
        if len(refused) < 2:
            refused.append(record)
            raise LogOverloadedError("full")
        return log.append(record)

    with closing(SegmentLog(tmp_path)) as log, serving(Ingest(append)) as server:
        exporter = EXPORTERS[kind](Receiver(server, log))
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        started = time.monotonic()
        with provider.get_tracer("test").start_as_current_span("s"):
            pass
        assert provider.force_flush(20_000)
        assert time.monotonic() - started < 10
        provider.shutdown()
        assert len(Receiver(server, log).records()) == 1
    assert len(refused) == 2


@pytest.mark.otlp_rule("C19", "C22")
@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_the_sdk_does_not_send_refused_metrics_again(
    receiver: Receiver, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    exporter: MetricExporter = (
        GrpcMetrics(receiver.grpc, insecure=True)
        if kind == "grpc"
        else HttpMetrics(f"{receiver.http}/v1/metrics")
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf)
    provider = MeterProvider([reader], shutdown_on_exit=False)
    provider.get_meter("test").create_counter("c").add(1)
    started = time.monotonic()
    reader.collect()
    assert time.monotonic() - started < 2, "one attempt"
    provider.shutdown()
    assert caplog.records, "and says so"
    assert receiver.records() == []
