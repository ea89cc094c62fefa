"""Our own metrics in a real Prometheus, with exemplars, and through a real Collector by OTLP."""

from __future__ import annotations

import gzip
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from memtrace_collector.telemetry.catalog import METRICS
from tests import components
from tests.contract import scenarios
from tests.integration.servers import Up, eventually, get, running, up
from tests.ports import free_port
from tests.sinks import Sink, sink

FAILURES = ("overwritten", "stale_retrieved", "omission")
OTELCOL = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlphttp: {{endpoint: "{sink}", sending_queue: {{enabled: false}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{metrics: {{receivers: [otlp], exporters: [otlphttp]}}}}
"""


class Scraped(NamedTuple):
    """An `up` that judged failures, and the Prometheus that scrapes it."""

    up: Up
    prometheus: str


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    binary = components.prometheus()
    folder = tmp_path_factory.mktemp("metrics")
    with ExitStack() as parts:
        port, address = free_port(), f"127.0.0.1:{free_port()}"
        command = [
            str(binary),
            f"--config.file={_configuration(folder, port)}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
            "--enable-feature=exemplar-storage",
            "--log.level=warn",
        ]
        # before `up`: it takes five seconds until it asks for the first time
        parts.enter_context(running(command, folder / "prometheus.log"))
        backend = parts.enter_context(sink())
        api = ("--api-port", str(port))
        server = parts.enter_context(up(folder / "store", "--forward", backend.url, *api))
        for name in FAILURES:
            server.send(scenarios.request(name).SerializeToString())
        server.post("/attribute", {})
        url = f"http://{address}"
        stored = f"sum(memtrace_verdicts_stored_total) == {len(FAILURES)}"
        eventually(lambda: _query(url, stored), "a scrape after the verdicts")
        yield Scraped(server, url)


def _configuration(folder: Path, port: int) -> Path:
    document = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {"job_name": "memtrace", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        ],
    }
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(document))
    return path


def _query(url: str, expression: str) -> list[dict[str, Any]]:
    response = get(f"{url}/api/v1/query", query=expression)
    return response.json()["data"]["result"] if response else []


def _exemplars(url: str, expression: str) -> set[str]:
    now = time.time()
    response = httpx.get(
        f"{url}/api/v1/query_exemplars",
        params={"query": expression, "start": now - 3_600, "end": now + 60},
        trust_env=False,
    )
    found = response.raise_for_status().json()["data"]
    return {each["labels"]["trace_id"] for series in found for each in series["exemplars"]}


@pytest.mark.parametrize(
    "series", ["memtrace_verdicts_stored_total", "memtrace_verdict_score_bucket"]
)
def test_prometheus_leads_from_verdicts_to_their_case_traces(scraped: Scraped, series: str) -> None:
    verdicts = scraped.up.get("/verdicts")
    traces = {each["case_trace"] for each in verdicts}
    found = _exemplars(scraped.prometheus, series)
    assert found and found <= traces
    types = {
        each["metric"]["type"]
        for each in _query(scraped.prometheus, "memtrace_verdicts_stored_total")
    }
    assert types == {each["error_type"] for each in verdicts} and len(found) == len(types)


def test_prometheus_understands_every_metric_that_up_shows(scraped: Scraped) -> None:
    (target,) = get(f"{scraped.prometheus}/api/v1/targets").json()["data"]["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    metadata = get(f"{scraped.prometheus}/api/v1/targets/metadata").json()["data"]
    kinds = {each["metric"]: (each["type"], each["unit"], each["help"]) for each in metadata}
    ours = {name for name in kinds if name.startswith("memtrace_")}
    known = {each.prometheus.removesuffix("_total"): each for each in METRICS.values()}
    assert ours <= set(known) and len(ours) > 40
    for name in ours:
        metric = known[name]
        assert kinds[name] == (metric.kind, metric.prometheus_unit, metric.description)


def test_what_operations_did_crosses_from_the_projecting_process(scraped: Scraped) -> None:
    operations = sum(len(scenarios.facts(name)) for name in FAILURES)
    for series in ("memtrace_operations_total", "memtrace_operation_duration_seconds_count"):
        (total,) = _query(scraped.prometheus, f"sum({series})")
        assert float(total["value"][1]) == operations
    quantile = "histogram_quantile(0.9, sum by (le) (memtrace_operation_duration_seconds_bucket))"
    (found,) = _query(scraped.prometheus, quantile)
    assert 0 < float(found["value"][1]) <= 60


def test_promtool_finds_nothing_to_say_against_a_running_up(scraped: Scraped) -> None:
    shown = httpx.get(f"{scraped.up.addresses['api']}/metrics", trust_env=False).content
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=shown, capture_output=True, timeout=30, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_a_collector_takes_our_metrics(tmp_path: Path) -> None:
    binary, port = components.otelcol(), free_port()
    with ExitStack() as parts:
        receiver = parts.enter_context(sink())
        configuration = tmp_path / "otelcol.yaml"
        configuration.write_text(OTELCOL.format(port=port, sink=receiver.url))
        command = [str(binary), f"--config={configuration}"]
        parts.enter_context(running(command, tmp_path / "otelcol.log"))
        settings = tmp_path / "memtrace.yaml"
        exporting = {"otlp_url": f"grpc://127.0.0.1:{port}", "interval_seconds": 0.2}
        settings.write_text(yaml.safe_dump({"telemetry": exporting}))
        server = parts.enter_context(up(tmp_path / "store", "--config", str(settings)))
        server.send(scenarios.request("overwritten").SerializeToString())
        found = eventually(lambda: _with_operations(receiver), "our metrics at the sink")
    attributes = {
        each.key: each.value.string_value for each in found.resource_metrics[0].resource.attributes
    }
    assert (attributes["service.name"], attributes["memtrace.role"]) == ("memtrace-otel", "up")


def _with_operations(receiver: Sink) -> ExportMetricsServiceRequest | None:
    """The first request in which operations were counted."""
    for path, body in zip(receiver.paths, list(receiver.bodies)):
        assert path == "/v1/metrics"
        request = ExportMetricsServiceRequest.FromString(_plain(body))
        names = {
            m.name for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics
        }
        if {"memtrace.operations", "memtrace.operation.duration"} <= names:
            return request
    return None


def _plain(body: bytes) -> bytes:
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
