"""``collector/otelcol.yaml`` in a real Collector: which way things take, and that they arrive."""

from __future__ import annotations

import gzip
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import grpc
import httpx
import pytest
import yaml
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects.memtrace import OWN_SPANS
from memtrace_collector.receiver.decode import decode_logs, decode_traces
from tests.contract import scenarios
from tests.demo_run import ROOT
from tests.http_client import CLIENT
from tests.integration.servers import eventually, get
from tests.integration.stack import Stack
from tests.receivers import Receiver, running
from tests.sinks import sink

CONFIGURATION = yaml.safe_load((ROOT / "collector" / "otelcol.yaml").read_text())
MEMORY_EXPORTER = "otlp_http/memtrace"
LARGE = 30_000_000
"""Bytes of one attribute: more than a Collector takes unless told otherwise."""


@dataclass
class Front:
    """A Collector between stand-ins: real receivers in place of `process` and Jaeger."""

    stack: Stack
    process: Receiver
    jaeger: Receiver

    def post(self, signal_name: str, request: Message, port: int = 4318) -> None:
        post(self.stack, signal_name, request, port)


def post(stack: Stack, signal_name: str, request: Message, port: int = 4318) -> None:
    """To a door of the Collector over HTTP; raises unless it acknowledges."""
    response = CLIENT.post(
        f"{stack.url('otelcol', port)}/v1/{signal_name}",
        content=request.SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    response.raise_for_status()


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    stack = Stack(tmp_path_factory.mktemp("front"))
    with standing_in(stack) as (process, jaeger), stack.collector():
        yield Front(stack, process, jaeger)


@contextmanager
def standing_in(stack: Stack) -> Iterator[tuple[Receiver, Receiver]]:
    with ExitStack() as started:
        yield tuple(
            started.enter_context(running(stack.folder / f"{name}-log", http_port=port))
            for name in ("process", "jaeger")
            for port in [stack.port(name, 4318)]
        )


def spans(receiver: Receiver) -> list[Span]:
    """Everything that came, as it came."""
    return [
        span
        for record in receiver.records()
        if record.signal == "traces"
        for resource in decode_traces(record).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def one(name: str, **attributes: str) -> Span:
    """A failing span of a trace of its own, which no sampling drops."""
    identity = os.urandom(16)
    span = Span(
        trace_id=identity,
        span_id=identity[:8],
        name=name,
        start_time_unix_nano=1_780_000_000 * 10**9,
        end_time_unix_nano=1_780_000_001 * 10**9,
    )
    span.status.code = span.status.STATUS_CODE_ERROR
    for key, value in attributes.items():
        span.attributes.add(key=key.replace("__", ".")).value.string_value = value
    return span


def with_event(span: Span) -> Span:
    span.events.add(name="gen_ai.evaluation.result")
    return span


def request_of(*found: Span) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(found)
    return request


TO_US: dict[str, Callable[[], Span]] = {
    "a step": lambda: one("chat", memtrace__step="answer"),
    "a flagged span": lambda: one("chat", memtrace__flagged="true"),
    "an evaluated answer": lambda: with_event(one("chat", gen_ai__operation__name="chat")),
    **{
        name: lambda name=name: one("any", gen_ai__operation__name=name)
        for name in (
            "create_memory",
            "update_memory",
            "upsert_memory",
            "delete_memory",
            "search_memory",
        )
    },
}
PAST_US: dict[str, Callable[[], Span]] = {
    "of a shop": lambda: one("checkout"),
    "a model call": lambda: one("chat", gen_ai__operation__name="chat"),
    "with an event": lambda: with_event(one("checkout")),
    **{name: lambda name=name: one(name, memtrace__step="answer") for name in sorted(OWN_SPANS)},
}


@pytest.fixture(scope="module")
def routed(front: Front) -> dict[str, Span]:
    """One span of each kind, sent in one request; all of them have arrived somewhere."""
    sent = {kind: make() for kind, make in {**TO_US, **PAST_US}.items()}
    front.post("traces", request_of(*sent.values()))

    def arrived() -> set[bytes]:
        return {span.trace_id for span in (*spans(front.process), *spans(front.jaeger))}

    eventually(lambda: {span.trace_id for span in sent.values()} <= arrived(), "every span")
    return sent


@pytest.mark.parametrize("kind", [*TO_US, *PAST_US])
def test_a_span_takes_one_way_to_us_or_past_us_to_jaeger(front, routed, kind):
    ways = (front.process, front.jaeger)
    taken, not_taken = ways if kind in TO_US else reversed(ways)
    assert spans(taken).count(routed[kind]) == 1, "the span, unchanged"
    assert routed[kind].trace_id not in {found.trace_id for found in spans(not_taken)}


def test_what_we_give_back_goes_to_jaeger_and_not_to_us_again(front):
    memory, derived = one("create_memory", memtrace__step="create"), one("memtrace.case")
    front.post("traces", request_of(memory, derived), port=4320)
    eventually(lambda: {memory.name, derived.name} <= {s.name for s in spans(front.jaeger)}, "both")
    assert not {memory.trace_id, derived.trace_id} & {s.trace_id for s in spans(front.process)}


def test_lineage_of_any_size_and_links_with_their_attributes_arrive_unchanged(front):
    span = one("memtrace.assemble", memtrace__step="assemble", memtrace__lineage="x" * 300_000)
    for number in range(200):
        link = span.links.add(trace_id=os.urandom(16), span_id=os.urandom(8))
        link.attributes.add(key="memtrace.link.relation").value.string_value = f"r{number}"
    front.post("traces", request_of(span))
    eventually(lambda: span in spans(front.process), "the span, unchanged")


@pytest.mark.parametrize("way", ["grpc", "http"])
def test_a_large_request_is_not_refused_at_the_door(front, way):
    span = one("memtrace.assemble", memtrace__step="assemble", memtrace__values="x" * LARGE)
    if way == "http":
        front.post("traces", request_of(span))
    else:
        address = f"127.0.0.1:{front.stack.port('otelcol', 4317)}"
        with grpc.insecure_channel(address) as channel:
            TraceServiceStub(channel).Export(request_of(span), timeout=60)
    eventually(lambda: span.trace_id in {s.trace_id for s in spans(front.process)}, "the span")


def evaluation(body: str) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.event_name, record.body.string_value = "gen_ai.evaluation.result", body
    return request


def test_of_logs_only_evaluations_reach_us(front):
    request = evaluation("by name")
    records = request.resource_logs[0].scope_logs[0].log_records
    older = records.add()
    older.body.string_value = "by attribute"
    older.attributes.add(key="event.name").value.string_value = "gen_ai.evaluation.result"
    records.add(event_name="exception").body.string_value = "other"
    records.add().body.string_value = "plain"
    front.post("logs", request)
    eventually(lambda: len(_logged(front.process)) >= 2, "the evaluations")
    assert sorted(_logged(front.process)) == ["by attribute", "by name"]
    assert not _logged(front.jaeger)


def test_metrics_of_agents_go_to_prometheus(front):
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="of.an.agent")
    metric.gauge.data_points.add(as_int=1)
    with sink(port=front.stack.port("prometheus", 9090)) as prometheus:
        front.post("metrics", request)
        eventually(lambda: prometheus.bodies, "the metric")
    assert prometheus.paths[0] == "/api/v1/otlp/v1/metrics"
    assert b"of.an.agent" in gzip.decompress(prometheus.bodies[0])


@pytest.mark.fault("F17")
def test_spans_wait_on_disk_while_everybody_behind_is_down_and_the_collector_is_killed(tmp_path):
    stack = Stack(tmp_path)
    request = scenarios.request("overwritten")
    derived = one("memtrace.attribution")
    with stack.collector() as pid:
        post(stack, "traces", request)
        post(stack, "traces", request_of(derived), port=4320)
        os.kill(pid, signal.SIGKILL)
    sent = {s.span_id for r in request.resource_spans for c in r.scope_spans for s in c.spans}
    with standing_in(stack) as (process, jaeger), stack.collector():
        eventually(lambda: sent <= {s.span_id for s in spans(process)}, "every memory span")
        eventually(lambda: derived in spans(jaeger), "what was given back")


def test_dashboards_and_alerts_ask_for_what_the_collector_tells_of_itself(tmp_path):
    stack = Stack(tmp_path)
    full = tmp_path / "full.yaml"
    queue = {"queue_size": 300_000, "block_on_overflow": False}
    full.write_text(yaml.safe_dump({"exporters": {MEMORY_EXPORTER: {"sending_queue": queue}}}))
    asked = {
        name
        for path in (ROOT / "dashboards").rglob("*")
        if path.suffix in (".json", ".yml")
        for name in re.findall(r"\botelcol_\w+", path.read_text())
    }

    def told() -> set[str]:
        page = get(stack.url("otelcol", 8888) + "/metrics")
        return set(re.findall(r"^otelcol_\w+", page.text, re.MULTILINE)) if page else set()

    with sink(400, port=stack.port("process", 4318)), stack.collector("--config", str(full)):
        post(stack, "traces", request_of(one("chat", memtrace__step="answer")))
        post(stack, "logs", evaluation("by name"))
        with pytest.raises(httpx.HTTPStatusError):
            post(stack, "traces", request_of(one("c", memtrace__step="x" * 400_000)))
        eventually(lambda: asked <= told(), f"all of {asked}")
    assert len(asked) == 5


def test_every_exporter_of_spans_keeps_them_on_disk_for_as_long_as_it_takes():
    exporting = {
        name
        for key, pipeline in CONFIGURATION["service"]["pipelines"].items()
        if not key.startswith("metrics")
        for name in pipeline["exporters"]
    }
    for name in exporting:
        exporter = CONFIGURATION["exporters"][name]
        assert exporter["sending_queue"]["storage"] == "file_storage", name
        assert exporter["retry_on_failure"]["max_elapsed_time"] == 0, name
    assert CONFIGURATION["extensions"]["file_storage"]["fsync"] is True


def test_every_pipeline_guards_its_memory_first():
    for name, pipeline in CONFIGURATION["service"]["pipelines"].items():
        assert pipeline["processors"][0] == "memory_limiter", name


def test_the_spans_that_it_takes_for_ours_are_all_that_we_write_back():
    (condition,) = CONFIGURATION["processors"]["filter/derived"]["traces"]["span"]
    pattern = re.search(r'"(\^.*\$)"', condition)[1].replace("\\\\", "\\")
    assert all(re.match(pattern, name) for name in OWN_SPANS)
    assert not re.match(pattern, "memtrace.flag")


def _logged(receiver: Receiver) -> list[str]:
    return [
        record.body.string_value
        for entry in receiver.records()
        if entry.signal == "logs"
        for resource in decode_logs(entry).resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]
