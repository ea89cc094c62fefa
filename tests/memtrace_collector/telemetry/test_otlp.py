"""Our metrics reach whoever takes OTLP, by HTTP and gRPC; a receiver that is down costs nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from memtrace_collector.settings.telemetry import TelemetryConfig
from memtrace_collector.telemetry.metrics import Exemplar
from memtrace_collector.telemetry.telemetry import ROLE, Reading, Telemetry
from tests.ports import free_port
from tests.sinks import sink

CASE_TRACE = Exemplar("ab" * 16, "cd" * 8)
VERDICT = {"stage": "update", "type": "overwritten", "system": "mem0", "method": "rules"}
DEADLINE_SECONDS = 20.0


class Taking(MetricsServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []

    def Export(  # noqa: N802 - the name in the protocol
        self, request: ExportMetricsServiceRequest, context: grpc.ServicerContext
    ) -> ExportMetricsServiceResponse:
        self.requests.append(request)
        return ExportMetricsServiceResponse()


@contextmanager
def grpc_receiver() -> Iterator[tuple[str, Taking]]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    taking = Taking()
    add_MetricsServiceServicer_to_server(taking, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"grpc://127.0.0.1:{port}", taking
    finally:
        server.stop(None).wait()


def eventually(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def counted(telemetry: Telemetry) -> None:
    telemetry.add("memtrace.verdicts.stored", 2, CASE_TRACE, **VERDICT)
    telemetry.record("memtrace.verdict.score", 0.95, CASE_TRACE, stage="update")
    telemetry.gauge("memtrace.projection.lag", lambda: [Reading(7, {})])


def metrics_of(request: ExportMetricsServiceRequest) -> dict[str, Metric]:
    (resource,) = request.resource_metrics
    return {each.name: each for scope in resource.scope_metrics for each in scope.metrics}


def check(request: ExportMetricsServiceRequest) -> None:
    attributes = {
        each.key: each.value.string_value
        for each in request.resource_metrics[0].resource.attributes
    }
    assert attributes["service.name"] == "memtrace-otel"
    assert attributes["service.version"] == "1.2.3"
    assert attributes[ROLE] == "work"
    assert len(attributes["service.instance.id"]) == 36
    found = metrics_of(request)
    stored = found["memtrace.verdicts.stored"]
    assert (stored.unit, stored.sum.is_monotonic) == ("{verdict}", True)
    (point,) = stored.sum.data_points
    assert {each.key: each.value.string_value for each in point.attributes} == VERDICT
    assert point.as_double + point.as_int == 2
    (score,) = found["memtrace.verdict.score"].histogram.data_points
    assert (score.count, score.sum, list(score.bucket_counts)[-2:]) == (1, 0.95, [1, 0])
    assert score.exemplars[0].span_id.hex() == CASE_TRACE.span_id
    (lag,) = found["memtrace.projection.lag"].gauge.data_points
    assert (found["memtrace.projection.lag"].unit, lag.as_double or lag.as_int) == ("By", 7)


def exporting(url: str, seconds: float = 0.1) -> Telemetry:
    return Telemetry("1.2.3", "work", TelemetryConfig(otlp_url=url, interval_seconds=seconds))


def case_traces(requests: Iterable[ExportMetricsServiceRequest]) -> set[str]:
    """Exemplars of verdicts: each is in the first export after it."""
    return {
        exemplar.trace_id.hex()
        for request in requests
        for point in metrics_of(request).get("memtrace.verdicts.stored", Metric()).sum.data_points
        for exemplar in point.exemplars
    }


@pytest.mark.parametrize("path", ["", "/v1/metrics"])
def test_metrics_are_exported_over_http(path: str) -> None:
    with sink() as receiver:
        telemetry = exporting(receiver.url + path, seconds=3_600.0)
        counted(telemetry)
        telemetry.close()  # the last export
        assert receiver.paths == ["/v1/metrics"]
        exported = ExportMetricsServiceRequest.FromString(receiver.bodies[-1])
        check(exported)
        assert case_traces([exported]) == {CASE_TRACE.trace_id}


def test_metrics_are_exported_over_grpc_from_time_to_time() -> None:
    with grpc_receiver() as (url, receiver):
        telemetry = exporting(url)
        counted(telemetry)
        eventually(lambda: len(receiver.requests) > 3, "four exports")
        telemetry.close()
        check(receiver.requests[-1])
        assert case_traces(receiver.requests) == {CASE_TRACE.trace_id}


def test_a_receiver_that_is_down_is_counted_said_once_and_costs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = free_port()
    telemetry = exporting(f"http://127.0.0.1:{port}")
    counted(telemetry)

    def failures() -> float:
        shown = telemetry.render()[0].decode().splitlines()
        (line,) = [x for x in shown if x.startswith("memtrace_telemetry_export_failures_total ")]
        return float(line.rpartition(" ")[2])

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]

    eventually(lambda: failures() >= 1 and said(), "a failure that is counted and said")
    assert said() == ["our metrics could not be exported; the next export has them"]
    with sink(port=port) as receiver:
        eventually(lambda: receiver.bodies, "an export once somebody listens")
        check(ExportMetricsServiceRequest.FromString(receiver.bodies[-1]))
        telemetry.close()


def test_the_end_does_not_wait_for_a_receiver_that_is_down() -> None:
    telemetry = exporting(f"http://127.0.0.1:{free_port()}")
    counted(telemetry)
    began = time.monotonic()
    telemetry.close()
    assert time.monotonic() - began < 4.0


def test_without_a_receiver_nothing_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    with sink() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "10")
        telemetry = Telemetry("1.2.3")
        counted(telemetry)
        telemetry.close()
        assert receiver.paths == [], "the standard variables are for the SDK of an agent"
