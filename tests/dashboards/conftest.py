"""A memtrace in parts over PostgreSQL, scraped by a Prometheus, with failures in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.receiver.decode import decode_traces
from tests import components, receivers
from tests.dashboards import grafana
from tests.dashboards.choices import chosen, from_sources
from tests.dashboards.grafana import Window
from tests.dashboards.sources import READER, Monitored
from tests.demo_run import DemoRun
from tests.integration.sending import spans_apart, together
from tests.integration.servers import running as server
from tests.integration.stack import Stack
from tests.memtrace_collector.running import (
    VECTORS,
    Up,
    eventually,
    start,
)
from tests.ports import free_port
from tests.postgres import Cluster

PROMPT = {"MEMTRACE_ATTRIBUTION_INTERVAL_SECONDS": "0.1"}
AFTER_THE_DEPLOY = ("merged_wrong", "stale_retrieved", "ranked_out")
"""Contract vectors that are sent then."""


@pytest.fixture(scope="session")
def window(monitored: Monitored) -> Window:
    """From the deploy on: the window before it holds failures, too."""
    return Window(monitored.deployed, time.time())


@pytest.fixture(scope="session")
def values(monitored: Monitored, window: Window) -> dict[str, dict[str, Any]]:
    """What the variables of each dashboard say, found by their own queries."""
    options = from_sources(monitored, window)
    return {each.name: chosen(each, options) for each in grafana.dashboards()}


@pytest.fixture(scope="session")
def monitored(
    demo: DemoRun, postgres_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Monitored]:
    """The demo's failures, a deploy, and others after it: the worker is started anew, and its
    destination is gone from then on."""
    folder = tmp_path_factory.mktemp("monitored")
    with suppress(subprocess.CalledProcessError):  # it is there already
        postgres_cluster.execute(f"CREATE ROLE {READER} LOGIN")
    url = postgres_cluster.new_database()
    with ExitStack() as opened:
        sink = opened.enter_context(receivers.running(folder / "sink"))
        front = Stack(folder)
        ports = {role: free_port() for role in ("process", "work", "serve")}
        targets = {
            "memtrace": [f"127.0.0.1:{port}" for port in ports.values()],
            "otelcol": [f"127.0.0.1:{front.port('otelcol', 8888)}"],
        }
        # before all others: it takes five seconds until it asks for the first time
        prometheus = _prometheus(opened, folder, targets)
        opened.enter_context(front.collector())
        start_one = partial(_started, opened, folder, url, ports)
        doors = ("--grpc-port", "0", "--http-port", "0", "--log", str(folder / "process"))
        process = start_one("process", *doors, "--forward", sink.http)
        work = start_one("work", "--forward", sink.http)
        serve = start_one("serve", "--log", str(folder / "serve"))
        found = Monitored(prometheus, url.replace("//test@", f"//{READER}@"), serve)
        deployed = _fill(found, process, demo)
        assert work.stop() == 0
        start_one("work", "--forward", f"http://127.0.0.1:{free_port()}")
        _fail(found, process)
        _judge(found)
        yield replace(found, deployed=deployed)


def _fill(found: Monitored, process: Up, demo: DemoRun) -> float:
    """What the demo sent, flags last, and spans in two halves: what grows is scraped before and
    after. Gives when all of its verdicts were seen."""
    parts = [part for record in demo.records() for part in spans_apart(decode_traces(record))]
    spans, flags = (
        [part for part in parts if _is_flag(part) == is_wanted] for is_wanted in (False, True)
    )
    for half in (spans[::2], spans[1::2]):
        more = f"sum(memtrace_operations_total) > {_operations(found)}"
        _post(process, half)
        eventually(lambda told=more: bool(found.query(told)), "operations, scraped")
    _post(process, flags)
    eventually(lambda: len(found.serving.ask("/verdicts")) == len(demo.cases), "the verdicts")
    return _seen(found, len(demo.cases))


def _is_flag(request: ExportTraceServiceRequest) -> bool:
    return request.resource_spans[0].scope_spans[0].spans[0].name == "memtrace.flag"


def _operations(found: Monitored) -> str:
    """How many were scraped so far."""
    series = found.query("sum(memtrace_operations_total)")
    return str(series[0]["value"][1]) if series else "0"


def _post(process: Up, parts: list[ExportTraceServiceRequest]) -> None:
    response = process.post(together(parts).SerializeToString(), "application/x-protobuf")
    assert response.status_code == 200, response.text


def _fail(found: Monitored, process: Up) -> None:
    expected = len(found.serving.ask("/verdicts")) + len(AFTER_THE_DEPLOY)
    for name in AFTER_THE_DEPLOY:
        assert process.post((VECTORS / f"{name}.otlp.json").read_bytes()).status_code == 200
    eventually(lambda: len(found.serving.ask("/verdicts")) == expected, "the verdicts")


def _seen(found: Monitored, counted: int, *also: str) -> float:
    """A moment, in seconds since 1970, until which for some seconds every scrape told of all
    verdicts: of so many as a worker counts since its start, and of all as serve reads them; and of
    what ``also`` says in PromQL."""
    stored = len(found.serving.ask("/verdicts"))
    told = " and ".join(
        (
            f"sum(memtrace_verdicts_stored_total) >= {counted}",
            f"sum(memtrace_verdicts) == {stored}",
            *also,
        )
    )
    moment = time.time()

    def is_seen() -> bool:
        nonlocal moment
        moment = time.time()
        said = [found.query(told, moment - ago) for ago in range(4)]
        return all(said)

    eventually(is_seen, "all verdicts, scraped")
    return moment


def _judge(found: Monitored) -> None:
    """A person confirms a verdict of before."""
    verdicts = found.serving.ask("/verdicts")
    verdict = next(each for each in verdicts if each["error_type"] == "overwritten")
    answer = f"{verdict['answer']['traceId']}:{verdict['answer']['spanId']}"
    found.serving.send("/judge", {"answer": answer, "action": "confirm", "by": "anna"})
    judged = ("sum(memtrace_judgements_total) == 1", "max(memtrace_judged) == 1")
    _seen(found, len(AFTER_THE_DEPLOY), *judged)


def _started(
    opened: ExitStack,
    folder: Path,
    url: str,
    ports: Mapping[str, int],
    role: str,
    *arguments: str,
) -> Up:
    fixed = ("--store", url, "--api-port", str(ports[role]))
    up = start(role, folder / role, *fixed, *arguments, **PROMPT)
    opened.callback(lambda: up.process.poll() is None and up.stop())
    return up


def _prometheus(opened: ExitStack, folder: Path, targets: Mapping[str, list[str]]) -> str:
    """With the configuration that is checked in, at the addresses of this run."""
    binary = components.prometheus()
    document = yaml.safe_load((grafana.ROOT / "dashboards" / "prometheus.yml").read_text())
    for job in document["scrape_configs"]:
        job["static_configs"] = [{"targets": targets[job["job_name"]]}]
    document["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    document["rule_files"] = [str(grafana.ROOT / "dashboards" / "prometheus" / "alerts.yml")]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(document))
    address = f"127.0.0.1:{free_port()}"
    line = [
        str(binary), f"--config.file={folder / 'prometheus.yml'}",
        f"--web.listen-address={address}", f"--storage.tsdb.path={folder / 'tsdb'}",
        "--enable-feature=exemplar-storage", "--log.level=warn",
    ]  # fmt: skip
    opened.enter_context(server(line, folder / "prometheus.log"))
    url = f"http://{address}"
    eventually(lambda: _is_ready(url), "Prometheus")
    return url


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
