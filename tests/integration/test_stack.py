"""The compose file's own configuration in real servers: from an agent's span to every page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter

import psycopg
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests import components
from tests.contract import scenarios
from tests.demo_run import COMMAND
from tests.integration.sending import spans_apart
from tests.integration.servers import eventually, get

FLAGGED, FLAGGED_TOO = "overwritten", "stale_retrieved"
"""Scenarios with a flagged answer."""
OTHERS = [name for name in scenarios.NAMES if "operations_in_file" in scenarios.expected(name)]
PLAIN_TRACES = 100
LARGE = 25_000_000
"""Bytes: more than a Collector, and Jaeger is one, takes unless told otherwise."""


def test_a_flagged_answers_verdict_appears_in_jaeger_and_each_span_there_once(installation):
    request = scenarios.request(FLAGGED)
    installation.send(request)
    eventually(lambda: installation.has(FLAGGED), "the scenario in the store")
    answer = scenarios.expected(FLAGGED)["answer"]
    jaeger = installation.jaeger
    eventually(lambda: jaeger.spans_named(answer["traceId"], "memtrace.attribution"), "the verdict")
    for trace_id, sent in _spans_by_trace(request).items():
        found = eventually(lambda t=trace_id: jaeger.trace(t), f"trace {trace_id}")
        shown = Counter(span["spanID"] for span in found["spans"])
        assert all(shown[span_id] == 1 for span_id in sent)


def test_a_verdict_that_was_delivered_is_looked_for_in_jaeger_and_seen(installation):
    """Through the Collector: an acknowledgement of the Collector says nothing about Jaeger."""
    eventually(lambda: installation.read_back() >= 1, "a verdict, read back")


def test_what_we_forward_does_not_come_back_to_us(installation):
    request = scenarios.request(FLAGGED_TOO)
    before = installation.accepted()
    installation.send(request)
    answer = scenarios.expected(FLAGGED_TOO)["answer"]
    eventually(
        lambda: installation.jaeger.spans_named(answer["traceId"], "memtrace.attribution"),
        "the verdict, which follows everything else that is sent on",
    )
    assert installation.accepted() - before == sum(map(len, _spans_by_trace(request).values()))
    assert not any(name.startswith("service:memtrace") for name in installation.graphs())


def test_derived_spans_at_the_front_door_go_to_jaeger_and_not_to_us(installation):
    before = installation.accepted()
    request = _plain("derived", 1)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.name = "memtrace.attribution"
    span.attributes.add(key="memtrace.step").value.string_value = "answer"
    installation.send(request)
    eventually(lambda: installation.jaeger.trace(span.trace_id.hex()), "the derived span")
    assert installation.accepted() == before


def test_of_other_spans_a_share_and_every_failing_one_reach_jaeger_and_none_reaches_us(
    installation,
):
    before = installation.accepted()
    fine, failing = _plain("fine", PLAIN_TRACES), _plain("failing", 1)
    span = failing.resource_spans[0].scope_spans[0].spans[0]
    span.status.code = span.status.STATUS_CODE_ERROR
    installation.send(fine)
    installation.send(failing)
    jaeger = installation.jaeger
    eventually(lambda: jaeger.trace(span.trace_id.hex()), "the failing trace")
    kept = eventually(lambda: [t for t in _spans_by_trace(fine) if jaeger.trace(t)], "a share")
    assert 0 < len(kept) < PLAIN_TRACES / 2
    assert installation.accepted() == before


def test_a_request_of_many_megabytes_arrives_whole_in_jaeger(installation):
    request = _plain("large", 50)
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.attributes.add(key="memtrace.step").value.string_value = "assemble"
        span.attributes.add(key="memtrace.lineage").value.string_value = "x" * (LARGE // 50)
    assert request.ByteSize() > LARGE
    installation.send(request)
    for trace_id in _spans_by_trace(request):
        eventually(lambda t=trace_id: installation.jaeger.trace(t), f"span of {trace_id}")


@pytest.mark.fault("F17")
@pytest.mark.parametrize(("victim", "number"), [("process", 0), ("otelcol", 1)])
def test_nothing_acknowledged_is_lost_when_one_is_killed_while_spans_come_in(
    installation, victim, number
):
    unsent = [name for name in OTHERS if name not in (FLAGGED, FLAGGED_TOO)]
    names = unsent[number * 6 : number * 6 + 6]
    requests = [part for name in names for part in spans_apart(scenarios.request(name))]
    half = len(requests) // 2
    for request in requests[:half]:
        installation.send(request)
    installation.end(victim, signal.SIGKILL)
    if victim == "process":  # the Collector takes on what it cannot hand on
        for request in requests[half:]:
            installation.send(request)
    installation.start(victim)
    if victim == "otelcol":
        for request in requests[half:]:
            installation.send(request)
    operations = Counter(
        facts.operation.graph_id
        for name in names
        for facts in scenarios.facts(name)
        if facts.operation
    )

    def found() -> dict[str, int]:
        return {name: count for name, count in installation.graphs().items() if name in operations}

    eventually(lambda: found() == operations, "every operation, each once")


def test_prometheus_reaches_every_target_that_its_configuration_names(installation):
    stack = installation.stack
    configuration = stack.folder / "prometheus.yml"
    promtool = components.prometheus().with_name("promtool")
    checked = subprocess.run([promtool, "check", "config", configuration], check=False)
    assert checked.returncode == 0
    url = stack.url("prometheus", 9090)
    targets = eventually(lambda: _all_up(url), "every target up")
    rules = get(f"{url}/api/v1/rules")
    assert rules is not None
    assert rules.json()["data"]["groups"]
    document = yaml.safe_load(configuration.read_text())
    named = [
        target
        for job in document["scrape_configs"]
        for group in job["static_configs"]
        for target in group["targets"]
    ]
    assert sorted(targets) == sorted(named)


def test_doctor_finds_an_installation_of_separate_roles_in_order(installation):
    stack = installation.stack
    ports = {
        "MEMTRACE_GRPC_PORT": str(stack.port("process", 4317)),
        "MEMTRACE_HTTP_PORT": str(stack.port("process", 4318)),
        "MEMTRACE_API_PORT": str(stack.port("process", 4319)),
        "MEMTRACE_HOST": "127.0.0.1",
    }
    done = subprocess.run(
        [*COMMAND, "doctor", "--config", stack.folder / "memtrace.yaml", "--format", "json"],
        env={**os.environ, **stack.environment("process"), **ports},
        capture_output=True,
        text=True,
        check=False,
    )
    checks = {check["check"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout
    assert checks["report views"]["says"] == "read by memtrace_reader"
    assert "process running" in checks["http port"]["says"]
    assert {checks[name]["state"] for name in ("store", "forward", "forward query")} == {"ok"}
    assert "localhost:16686" in checks["links to traces"]["says"]


def test_dashboards_may_read_the_report_views_and_nothing_else(installation):
    installation.send(scenarios.request(FLAGGED))
    counted = "SELECT count(*) AS verdicts FROM memtrace_report.failure"
    eventually(lambda: installation.report(counted)[0]["verdicts"], "a verdict")
    for statement in (
        "SELECT * FROM memtrace.verdict",
        "CREATE TABLE public.mine(x INT)",
        "CREATE TEMP TABLE mine(x INT)",
    ):
        with pytest.raises(psycopg.Error):
            installation.report(statement)


def test_the_demo_shows_its_verdicts_in_the_running_installation(installation, installed_demo):
    assert installed_demo.exit_code == 0, installed_demo.printed
    page = f"{installation.stack.url('serve', 4319)}/#/failures"
    assert page in installed_demo.printed
    for trace_id in {case["answer"]["traceId"] for case in installed_demo.cases}:
        eventually(
            lambda t=trace_id: installation.jaeger.spans_named(t, "memtrace.attribution"),
            f"the verdict on {trace_id}",
        )


def _all_up(prometheus: str) -> list[str] | None:
    response = get(f"{prometheus}/api/v1/targets")
    targets = response.json()["data"]["activeTargets"] if response else []
    if not targets or any(target["health"] != "up" for target in targets):
        return None
    return [target["labels"]["instance"] for target in targets]


def _spans_by_trace(request: ExportTraceServiceRequest) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                found.setdefault(span.trace_id.hex(), []).append(span.span_id.hex())
    return found


def _plain(name: str, traces: int) -> ExportTraceServiceRequest:
    """Spans of a shop, each a trace of its own, that took a second and went well."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for number in range(traces):
        trace_id = f"{name}:{number}".encode().ljust(16, b".")
        spans.add(
            trace_id=trace_id,
            span_id=trace_id[:8],
            name="checkout",
            start_time_unix_nano=1_780_000_000 * 10**9,
            end_time_unix_nano=1_780_000_001 * 10**9,
        )
    return request
