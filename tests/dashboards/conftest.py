"""A memtrace in parts over PostgreSQL, scraped by a Prometheus, with failures in it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests import components, receivers
from tests.dashboards import grafana
from tests.dashboards.choices import chosen, from_sources
from tests.dashboards.grafana import Window
from tests.dashboards.sources import READER, Monitored
from tests.integration.servers import running as server
from tests.memtrace_collector.running import (
    VECTORS,
    Up,
    command,
    environment,
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
    postgres_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Monitored]:
    """The demo's failures, a deploy, and others after it: the worker is started anew, and its
    destination is gone from then on."""
    folder = tmp_path_factory.mktemp("monitored")
    with suppress(subprocess.CalledProcessError):  # it is there already
        postgres_cluster.execute(f"CREATE ROLE {READER} LOGIN")
    url = postgres_cluster.new_database()
    with ExitStack() as opened:
        sink = opened.enter_context(receivers.running(folder / "sink"))
        start_one = partial(_started, opened, folder, url)
        doors = ("--grpc-port", "0", "--http-port", "0", "--log", str(folder / "process"))
        process = start_one("process", *doors, "--forward", sink.http)
        port = str(free_port())
        work = start_one("work", "--api-port", port, "--forward", sink.http)
        serve = start_one("serve", "--log", str(folder / "serve"))
        prometheus = _prometheus(opened, folder, [process, work, serve])
        found = Monitored(prometheus, url.replace("//test@", f"//{READER}@"), serve)
        deployed = _demo(found, process, folder)
        assert work.stop() == 0
        start_one("work", "--api-port", port, "--forward", f"http://127.0.0.1:{free_port()}")
        _fail(found, process)
        _judge(found)
        yield replace(found, deployed=deployed)


def _demo(found: Monitored, process: Up, folder: Path) -> float:
    """When all that it made was seen."""
    there = ("--endpoint", process.addresses["otlp_http"], "--api", found.serving.addresses["api"])
    done = subprocess.run(
        command("demo", "--store", str(folder / "demo"), *there),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return _seen(found, len(found.serving.ask("/verdicts")))


def _fail(found: Monitored, process: Up) -> None:
    expected = len(found.serving.ask("/verdicts")) + len(AFTER_THE_DEPLOY)
    for name in AFTER_THE_DEPLOY:
        assert process.post((VECTORS / f"{name}.otlp.json").read_bytes()).status_code == 200
    eventually(lambda: len(found.serving.ask("/verdicts")) == expected, "the verdicts")
    _seen(found, len(AFTER_THE_DEPLOY))


def _seen(found: Monitored, counted: int) -> float:
    """A moment, in seconds since 1970, until which for some seconds every scrape told of all
    verdicts: of so many as a worker counts since its start, and of all as serve reads them."""
    stored = len(found.serving.ask("/verdicts"))
    told = (
        f"sum(memtrace_verdicts_stored_total) >= {counted} and sum(memtrace_verdicts) == {stored}"
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
    seen = "sum(memtrace_judgements_total) == 1"
    eventually(lambda: bool(found.query(seen)), "the judgement, scraped")


def _started(opened: ExitStack, folder: Path, url: str, role: str, *arguments: str) -> Up:
    up = start(role, folder / role, "--store", url, *arguments, **PROMPT)
    opened.callback(lambda: up.process.poll() is None and up.stop())
    return up


def _prometheus(opened: ExitStack, folder: Path, services: list[Up]) -> str:
    """With the configuration that is checked in, at the addresses of this run."""
    binary = components.prometheus()
    document = yaml.safe_load((grafana.ROOT / "dashboards" / "prometheus.yml").read_text())
    job = next(each for each in document["scrape_configs"] if each["job_name"] == "memtrace")
    job["static_configs"] = [
        {"targets": [up.addresses["api"].removeprefix("http://") for up in services]}
    ]
    document["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    document["scrape_configs"] = [job]
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
