"""Spans that are sampled away or lost on their way, from a real SDK into a real ``up``."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.log import reader
from memtrace_collector.log.position import START
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.receiver.decode import decode_traces
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.integration.servers import Up, eventually, up
from tests.memtrace_collector.running import environment
from tests.ports import free_port

HERE = Path(__file__).parent
REQUESTS = 200
SAID = "I moved to Lisbon in March"


@pytest.mark.fault("F28")
def test_with_a_tenth_of_the_traces_sampled_every_memory_span_arrives(tmp_path: Path) -> None:
    with up(tmp_path / "store") as server:
        done = subprocess.run(
            [sys.executable, str(HERE / "sampled_program.py"), str(REQUESTS)],
            env=environment(
                OTEL_TRACES_SAMPLER="memtrace",
                OTEL_TRACES_SAMPLER_ARG="0.1",
                OTEL_TRACES_EXPORTER="otlp_proto_http",
                OTEL_METRICS_EXPORTER="none",
                OTEL_LOGS_EXPORTER="none",
                OTEL_EXPORTER_OTLP_ENDPOINT=server.addresses["otlp_http"],
            ),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        server.post("/settle", {})
        (graph,) = server.get("/graphs")
    assert graph["operations"] == REQUESTS
    names = spans_by_name(tmp_path / "store" / "log")
    assert names["create_memory"] == REQUESTS
    assert 0 < names["request"] < REQUESTS / 2, "ordinary spans are sampled as configured"
    (run,) = runs_of(tmp_path / "store")
    assert (run.first.number, run.last.number, run.last.farewell) == (1, REQUESTS + 1, True)


@pytest.mark.fault("F28", "F30")
def test_a_killed_exporter_shows_as_a_gap_that_closes_when_its_spans_come(tmp_path: Path) -> None:
    """While the receiver is away the SDK drops what it cannot deliver: the record's writing."""
    store, copies, port = tmp_path / "store", tmp_path / "copies", str(free_port())
    with ExitStack() as ended:
        with up(store, "--http-port", port):
            program = ended.enter_context(interrupted(f"http://127.0.0.1:{port}", copies))
            assert said_by(program) == "told"
        go_on(program)
        assert said_by(program) == "stored"
        with up(store, "--http-port", port) as server:
            go_on(program)
            assert said_by(program) == "answered"
            broken = verdict(server)
            assert (broken["error_type"], broken["absence"]) == ("insufficient_evidence", "broken")
            assert "gap" in broken["missing"]
            for line in copies.read_bytes().splitlines():
                server.send(base64.b64decode(line))
            closed = eventually(lambda: superseding(server, broken), "a verdict without a gap")
            assert closed["absence"] != "broken" and "gap" not in closed["missing"]
            assert len(server.get("/verdicts")) == 1, "a verdict is superseded, not duplicated"


@contextmanager
def interrupted(endpoint: str, copies: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(HERE / "interrupted_program.py"), endpoint, str(copies)],
        env=environment(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="SPAN_ONLY"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said_by(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def go_on(program: subprocess.Popen[str]) -> None:
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()


def verdict(server: Up) -> dict[str, Any]:
    server.post("/attribute", {})
    (found,) = server.get("/verdicts")
    return dict(found)


def superseding(server: Up, old: dict[str, Any]) -> dict[str, Any] | None:
    found = verdict(server)
    return found if found["revision"] > old["revision"] else None


def spans_by_name(log: Path) -> Counter[str]:
    return Counter(
        span.name
        for entry in reader.read(log, START)
        for resource in decode_traces(entry.record).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    )


def runs_of(folder: Path) -> list[Any]:
    reading = RecordReader()
    processes = {
        item.operation.sequence.process
        for entry in reader.read(folder / "log", START)
        for item in reading.facts(entry.record)
        if item.operation is not None and item.operation.sequence is not None
    }
    with closing(SqliteFactStore(folder / "facts.db")) as store:
        return [run for runs in store.runs(processes).values() for run in runs]
