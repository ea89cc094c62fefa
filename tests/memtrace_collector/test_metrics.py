"""What `up` and its parts tell when they are scraped: who tells what, and nothing about anybody."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from memtrace_collector.config import Config
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.gauges import install_log
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.telemetry import Telemetry
from memtrace_otel import semconv
from tests.memtrace_collector.processor.spans import attribute, memory_span, request
from tests.memtrace_collector.running import VECTORS, Up, eventually, start, start_up

NO_PROGRAMS = ("anna@example.org", "user:anna", "x" * 65)
SECRETS = (*NO_PROGRAMS, "graph-7f3a", "session-of-anna", "rec-4711")
FLEET = {each.prometheus for each in METRICS.values() if each.teller == "fleet"}
BY_HAND = {"memtrace_judged"}
"""Shown once a person has judged something."""
OF_A_LOG = {
    "memtrace_projection_lag_bytes",
    "memtrace_projection_delay_seconds",
}
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
NAMES = ("merged_wrong", "omission", "overwritten")


def gauges(up: Up) -> set[str]:
    """Names of our gauges that it shows."""
    kinds = (line.split() for line in up.metrics().splitlines() if line.startswith("# TYPE mem"))
    return {name for _, _, name, kind in kinds if kind == "gauge"}


def total(up: Up, name: str) -> float:
    """Of all series of a name."""
    lines = (
        each for each in up.metrics().splitlines() if each.startswith((f"{name} ", f"{name}{{"))
    )
    return sum(float(line.rpartition(" ")[2]) for line in lines)


@pytest.fixture
def apart(tmp_path: Path, postgres_url: str) -> Iterator[dict[str, Up]]:
    """`process`, `work` and `serve` over one database."""
    with ExitStack() as running:

        def launch(role: str, *arguments: str) -> Up:
            prompt = {"MEMTRACE_ATTRIBUTION_INTERVAL_SECONDS": "0.1"}
            up = start(role, tmp_path / role, "--store", postgres_url, *arguments, **prompt)
            running.callback(lambda: up.process.poll() is None and up.stop(signal.SIGKILL))
            return up

        doors = ("--grpc-port", "0", "--http-port", "0", "--log", str(tmp_path / "log"))
        yield {
            "process": launch("process", *doors),
            "work": launch("work"),
            "serve": launch("serve", "--log", str(tmp_path / "flags")),
        }


def test_each_part_tells_of_itself_and_one_of_the_stores(apart: dict[str, Up]) -> None:
    for name in NAMES:
        body = (VECTORS / f"{name}.otlp.json").read_bytes()
        assert apart["process"].post(body).status_code == 200
    eventually(lambda: total(apart["serve"], "memtrace_verdicts") == 3, "three verdicts")
    assert gauges(apart["serve"]) >= FLEET - BY_HAND
    assert not FLEET & (gauges(apart["process"]) | gauges(apart["work"]))
    assert gauges(apart["process"]) >= OF_A_LOG
    assert gauges(apart["work"]) == {"memtrace_references_unresolved"}
    assert total(apart["work"], "memtrace_verdicts_stored_total") == 3
    assert total(apart["work"], "memtrace_verdict_score_count") == 3
    eventually(lambda: total(apart["process"], "memtrace_operations_total") > 30, "operations")
    for other in ("work", "serve"):
        assert total(apart[other], "memtrace_operations_total") == 0


def test_nothing_that_is_shown_names_anybody(tmp_path: Path) -> None:
    up = start_up(tmp_path / "store")
    spans = []
    for number, secret in enumerate([*SECRETS, *(f"system {n}" for n in range(60))], 1):
        record = f"mem:{secret}@a"
        write = memory_span(number, 1, "create", graph=secret, outputs=[record])
        read = memory_span(number, 2, "retrieve", graph=secret, dropped=[[record, 0.1, secret, 1]])
        system = "mem0" if secret in SECRETS[len(NO_PROGRAMS) :] else secret
        for span in (write, read):
            span.attributes.append(attribute(semconv.MEMTRACE_SYSTEM, system))
            span.attributes.append(attribute("user.id", secret))
            span.attributes.append(attribute("error.type", secret if span is write else ""))
            spans.append(span)
    body = request(*spans, service="session-of-anna").SerializeToString()
    assert up.post(body, "application/x-protobuf").status_code == 200
    eventually(lambda: total(up, "memtrace_operations_total") == len(spans), "the operations")
    text = up.metrics()
    assert not [secret for secret in SECRETS if secret in text]
    values: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line.startswith("memtrace_"):
            for name, value in LABEL.findall(line):
                values.setdefault(name, set()).add(value)
    assert len(values.pop("system")) <= 32
    assert all(len(each) <= 32 for each in values.values()), values
    assert up.stop() == 0


def test_what_is_not_projected_yet_has_an_age(tmp_path: Path) -> None:
    telemetry = Telemetry("test")

    def delay() -> float:
        lines = telemetry.render()[0].decode().splitlines()
        (line,) = [each for each in lines if each.startswith("memtrace_projection_delay_seconds ")]
        return float(line.rpartition(" ")[2])

    with closing(DataFolder(tmp_path, Config(store=str(tmp_path)), telemetry)) as data:
        install_log(telemetry, data, None)
        assert delay() == 0.0
        span = memory_span(1, 1, "ingest", outputs=["msg:m/1@a"])
        data.append(request(span).SerializeToString(), "traces")
        first = delay()
        assert 0 < first < 60
        data.append(request(span).SerializeToString(), "traces")
        assert delay() > first, "of the oldest, not of the newest"
        data.project()
        assert delay() == 0.0
    telemetry.close()
