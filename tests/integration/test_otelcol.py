"""``collector/otelcol.yaml`` in a real Collector: memory spans take their own, durable way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests import components
from tests.contract import scenarios
from tests.integration.conftest import Up, eventually, get, running, up
from tests.ports import free_port

SCENARIO = "overwritten"


@dataclass(frozen=True)
class Collector:
    otlp_http: str

    def send(self, request: ExportTraceServiceRequest) -> None:
        response = httpx.post(
            f"{self.otlp_http}/v1/traces",
            content=request.SerializeToString(),
            headers={"content-type": "application/x-protobuf"},
            trust_env=False,
        )
        response.raise_for_status()


@contextmanager
def collector(folder: Path, memtrace: str, jaeger: str, log: str) -> Iterator[Collector]:
    """The Collector, with its queue in ``folder``."""
    ports = {name: f"127.0.0.1:{free_port()}" for name in ("GRPC", "HTTP", "HEALTH")}
    environment = {f"OTELCOL_{name}": address for name, address in ports.items()}
    environment |= {
        "OTELCOL_QUEUE": str(folder / "queue"),
        "OTELCOL_DECISION_WAIT": "1s",
        "MEMTRACE_ENDPOINT": memtrace,
        "JAEGER_ENDPOINT": jaeger,
    }
    command = [str(components.otelcol()), "--config", "collector/otelcol.yaml"]
    with running(command, folder / log, **environment):
        eventually(lambda: get(f"http://{ports['HEALTH']}"), "the Collector's health")
        yield Collector(f"http://{ports['HTTP']}")


def test_memory_spans_reach_our_service_and_failing_other_spans_reach_jaeger(jaeger, tmp_path):
    request = scenarios.request(SCENARIO)
    other_trace = _add_plain_spans(request)
    with (
        up(tmp_path / "store", "--forward", jaeger.otlp_http) as server,
        collector(tmp_path, server.addresses["otlp_http"], jaeger.otlp_http, "c.log") as front,
    ):
        front.send(request)
        _await_scenario(server)
        sampled = eventually(lambda: jaeger.trace(other_trace), "the failing trace in Jaeger")
        assert [span["operationName"] for span in sampled["spans"]] == ["checkout"]
        answer = scenarios.expected(SCENARIO)["answer"]
        eventually(
            lambda: jaeger.spans_named(answer["traceId"], "memtrace.attribution"), "the verdict"
        )
        names = [graph["graph_id"] for graph in server.get("/graphs")]
        assert names == [scenarios.expected(SCENARIO)["graph_id"]]


@pytest.mark.fault("F17")
def test_memory_spans_wait_on_disk_while_our_service_is_down_and_the_collector_restarts(tmp_path):
    memtrace = f"http://127.0.0.1:{free_port()}"
    with collector(tmp_path, memtrace, memtrace, "first.log") as front:
        front.send(scenarios.request(SCENARIO))
    with (
        up(tmp_path / "store") as server,
        collector(tmp_path, server.addresses["otlp_http"], memtrace, "second.log"),
    ):
        _await_scenario(server)


def _await_scenario(server: Up) -> None:
    expected = scenarios.expected(SCENARIO)

    def complete() -> bool:
        counts = {g["graph_id"]: g["operations"] for g in server.get("/graphs")}
        return counts.get(expected["graph_id"]) == expected["operations_in_file"]

    eventually(complete, "every operation of the scenario")


def _add_plain_spans(request: ExportTraceServiceRequest) -> str:
    """A failing span of a shop beside the memory spans; gives its trace id."""
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes(range(1, 17)), bytes(range(1, 9))
    span.name = "checkout"
    span.start_time_unix_nano, span.end_time_unix_nano = (
        1_780_000_000 * 10**9,
        1_780_000_001 * 10**9,
    )
    span.status.code = span.status.STATUS_CODE_ERROR
    return span.trace_id.hex()


@pytest.mark.parametrize("component", ["file_storage", "memory_limiter", "tail_sampling"])
def test_the_configuration_uses_what_keeps_spans(component):
    configuration = (Path(__file__).parents[2] / "collector" / "otelcol.yaml").read_text()
    assert f"{component}:" in configuration
