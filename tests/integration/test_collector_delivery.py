"""An official Collector in front of us, its queue on disk: nothing lost, nothing twice in a graph.

Whatever dies in between: the Collector, we, or one of two of us behind its load balancing.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read
from memtrace_collector.receiver.decode import decode_traces
from tests import components
from tests.contract import scenarios
from tests.integration.servers import Up, eventually, get, running, up
from tests.ports import free_port

CONFIGURATION = "tests/integration/otelcol-delivery.yaml"
NAMES = [name for name in scenarios.NAMES if "operations_in_file" in scenarios.expected(name)]
BOTH = "[otlp/memtrace, otlphttp/memtrace]"


class Ports:
    """Of two receivers, the same over restarts."""

    def __init__(self) -> None:
        self.grpc = [free_port(), free_port()]
        self.http = [free_port(), free_port()]

    def up(self, number: int) -> tuple[str, ...]:
        grpc_port, http_port = self.grpc[number], self.http[number]
        return ("--grpc-port", str(grpc_port), "--http-port", str(http_port))


@contextmanager
def collector(
    folder: Path, ports: Ports, exporters: str = BOTH, log: str = "c.log"
) -> Iterator[str]:
    """The Collector, with its queue in ``folder``; gives its OTLP/gRPC address."""
    here = {name: f"127.0.0.1:{free_port()}" for name in ("GRPC", "HTTP", "HEALTH")}
    environment = {f"OTELCOL_{name}": address for name, address in here.items()}
    environment |= {
        "OTELCOL_QUEUE": str(folder / "queue"),
        "FIRST_GRPC": f"127.0.0.1:{ports.grpc[0]}",
        "FIRST_HTTP": f"http://127.0.0.1:{ports.http[0]}",
        "SECOND_GRPC": f"127.0.0.1:{ports.grpc[1]}",
        "EXPORTERS": exporters,
    }
    command = [str(components.otelcol()), "--config", CONFIGURATION]
    with running(command, folder / log, **environment):
        eventually(lambda: get(f"http://{here['HEALTH']}"), "the Collector's health")
        yield here["GRPC"]


def one_span_each(names: list[str]) -> list[ExportTraceServiceRequest]:
    """A request for each span of these scenarios."""
    parts = []
    for name in names:
        for resource in scenarios.request(name).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    part = ExportTraceServiceRequest()
                    into = part.resource_spans.add(resource=resource.resource)
                    into.scope_spans.add(scope=scope.scope).spans.append(span)
                    parts.append(part)
    return parts


def send(address: str, requests: list[ExportTraceServiceRequest]) -> None:
    with grpc.insecure_channel(address) as channel:
        for request in requests:
            TraceServiceStub(channel).Export(request, timeout=30, wait_for_ready=True)


def await_graphs(server: Up, names: list[str]) -> None:
    """Every graph complete, and no operation more."""
    operations = [facts.operation for name in names for facts in scenarios.facts(name)]
    expected = Counter(operation.graph_id for operation in operations if operation)

    def found() -> dict[str, int]:
        graphs = {graph["graph_id"]: graph["operations"] for graph in server.get("/graphs")}
        return {graph_id: graphs.get(graph_id, 0) for graph_id in expected}

    eventually(lambda: all(found()[name] >= count for name, count in expected.items()), "all spans")
    assert found() == expected


def span_ids(store: Path) -> set[bytes]:
    """Of every span in the log of a stopped server."""
    return {
        span.span_id
        for entry in read(store / "log", START)
        for resource in decode_traces(entry.record).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }


@pytest.mark.fault("F11", "F12", "F17")
@pytest.mark.otlp_rule("C26")
def test_what_a_collector_sends_by_grpc_and_http_while_we_are_killed_is_there_once(
    tmp_path: Path,
) -> None:
    ports, requests = Ports(), one_span_each(NAMES)
    third = len(requests) // 3
    with collector(tmp_path, ports) as front:
        with up(tmp_path / "store", *ports.up(0)) as server:
            send(front, requests[:third])
            os.kill(server.addresses["pid"], signal.SIGKILL)
        send(front, requests[third : 2 * third])
        with up(tmp_path / "store", *ports.up(0)) as server:
            send(front, requests[2 * third :])
            await_graphs(server, NAMES)


@pytest.mark.fault("F17")
def test_a_collector_that_is_restarted_itself_goes_on_with_what_it_had(tmp_path: Path) -> None:
    ports, requests = Ports(), one_span_each(NAMES[:5])
    with collector(tmp_path, ports, log="first.log") as front:
        send(front, requests)
    with (
        up(tmp_path / "store", *ports.up(0)) as server,
        collector(tmp_path, ports, log="second.log"),
    ):
        await_graphs(server, NAMES[:5])


@pytest.mark.fault("F20")
def test_behind_load_balancing_every_span_reaches_one_of_two_although_each_dies_once(
    tmp_path: Path,
) -> None:
    """When one is away its traces wait or go to the other: a trace may be split between them."""
    ports, requests = Ports(), one_span_each(NAMES[:4])
    sent = {request.resource_spans[0].scope_spans[0].spans[0].span_id for request in requests}
    stores = [tmp_path / "first", tmp_path / "second"]
    with ExitStack() as stack:
        front = stack.enter_context(collector(tmp_path, ports, "[loadbalancing/memtrace]"))
        servers = [stack.enter_context(up(stores[n], *ports.up(n))) for n in range(2)]
        for number, server in enumerate(servers):
            part = requests[number::2]
            send(front, part[: len(part) // 2])
            os.kill(server.addresses["pid"], signal.SIGKILL)
            send(front, part[len(part) // 2 :])
            stack.enter_context(up(stores[number], *ports.up(number)))
        eventually(lambda: sent <= span_ids(stores[0]) | span_ids(stores[1]), "every span in a log")
    assert span_ids(stores[0])
    assert span_ids(stores[1])


@pytest.mark.fault("F17")
@pytest.mark.otlp_rule("C10", "C19")
def test_what_we_refuse_for_good_a_collector_drops_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too large a request, and metrics: neither is sent again, neither holds up what follows."""
    monkeypatch.setenv("MEMTRACE_MAX_REQUEST_BYTES", "100000")
    ports, name = Ports(), NAMES[0]
    too_large = ExportTraceServiceRequest()
    too_large.resource_spans.add().scope_spans.add().spans.add(
        trace_id=b"\1" * 16, span_id=b"\2" * 8, name="x" * 200_000
    )
    metrics = ExportMetricsServiceRequest()
    metric = metrics.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    metric.gauge.data_points.add(as_int=1)
    with (
        up(tmp_path / "store", *ports.up(0)) as server,
        collector(tmp_path, ports) as front,
    ):
        with grpc.insecure_channel(front) as channel:
            MetricsServiceStub(channel).Export(metrics, timeout=30)
        send(front, [too_large, scenarios.request(name)])
        await_graphs(server, [name])
        eventually(lambda: _dropped(tmp_path / "c.log") >= 3, "both doors' refusals")
    assert _dropped(tmp_path / "c.log") == 3, "the spans by each door, the metrics by one"


def _dropped(log: Path) -> int:
    return log.read_text().count("Exporting failed. Dropping data")
