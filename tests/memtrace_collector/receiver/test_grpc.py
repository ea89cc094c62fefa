from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from memtrace_collector.log.errors import LogUnavailableError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.receiver.ingest import Ingest
from tests.memtrace_collector.receiver.messages import EXPORT, traces
from tests.receivers import serving


@pytest.mark.otlp_rule("C1", "C12", "C36")
@pytest.mark.parametrize("compression", list(grpc.Compression))
def test_a_request_is_acknowledged_and_kept_byte_for_byte(receiver, compression) -> None:
    request = traces(padding=5000)
    with grpc.insecure_channel(receiver.grpc, compression=compression) as channel:
        answer = TraceServiceStub(channel).Export(request, timeout=10)
        assert not answer.HasField("partial_success")
    assert [record.body for record in receiver.records()] == [request.SerializeToString()]


@pytest.mark.otlp_rule("C13")
def test_logs_are_kept_as_logs_and_empty_requests_succeed(receiver) -> None:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1)
    with grpc.insecure_channel(receiver.grpc) as channel:
        LogsServiceStub(channel).Export(request, timeout=10)
        LogsServiceStub(channel).Export(ExportLogsServiceRequest(), timeout=10)
        TraceServiceStub(channel).Export(ExportTraceServiceRequest(), timeout=10)
    assert [record.signal for record in receiver.records()] == ["logs"]


@pytest.mark.otlp_rule("C20")
def test_malformed_bytes_are_an_invalid_argument(receiver) -> None:
    with (
        grpc.insecure_channel(receiver.grpc) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        channel.unary_unary(EXPORT)(b"nonsense", timeout=10)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert receiver.records() == []


@pytest.mark.otlp_rule("C14", "C33")
def test_bad_spans_are_refused_one_by_one_with_a_count(receiver) -> None:
    request = traces()
    request.resource_spans[0].scope_spans[0].spans.add(name="no ids")
    with grpc.insecure_channel(receiver.grpc) as channel:
        answer = TraceServiceStub(channel).Export(request, timeout=10)
    assert answer.partial_success.rejected_spans == 1


@pytest.mark.otlp_rule("C9", "C10")
@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_an_oversized_message_is_refused_for_good(start: Callable, compression) -> None:
    receiver = start(max_request_bytes=100_000)
    with grpc.insecure_channel(receiver.grpc, compression=compression) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            TraceServiceStub(channel).Export(traces(padding=1 << 20), timeout=10)
        TraceServiceStub(channel).Export(traces(), timeout=10)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    details = dict(caught.value.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    assert not Status.FromString(details).details, "no RetryInfo: it must not come again"
    assert len(receiver.records()) == 1


@pytest.mark.otlp_rule("C21", "C22", "C23")
def test_a_log_that_refuses_means_come_back_after_a_delay() -> None:
    def failing(record: LogRecord) -> Future[LogPosition]:
        future: Future[LogPosition] = Future()
        future.set_exception(LogUnavailableError("No space left on device"))
        return future

    with (
        serving(Ingest(failing)) as server,
        grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        TraceServiceStub(channel).Export(traces(), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    trailer = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    status = Status.FromString(trailer)
    retry = RetryInfo()
    assert status.details[0].Unpack(retry)
    assert 0 < retry.retry_delay.seconds <= 5


def test_metrics_are_refused_politely(receiver) -> None:
    with (
        grpc.insecure_channel(receiver.grpc) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        MetricsServiceStub(channel).Export(ExportMetricsServiceRequest(), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "metrics" in caught.value.details()
