"""`process`, `work` and `serve`, two of each, over one PostgreSQL."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.log.format import LogRecord
from tests import receivers
from tests.faults.sink import Arrived
from tests.memtrace_collector.running import VECTORS, Up, command, environment, eventually, start
from tests.receivers import Receiver

NAMES = ("merged_wrong", "omission", "overwritten", "wrongly_deleted")
PROMPT = {"MEMTRACE_ATTRIBUTION_INTERVAL_SECONDS": "0.1"}
Start = Callable[..., Up]


@pytest.fixture
def launch(tmp_path: Path, postgres_url: str) -> Iterator[Start]:
    with ExitStack() as running:

        def start_one(role: str, name: str, *arguments: str) -> Up:
            log = () if role == "work" else ("--log", str(tmp_path / name))
            doors = ("--grpc-port", "0", "--http-port", "0") if role == "process" else ()
            options = ("--store", postgres_url, *log, *doors, *arguments)
            up = start(role, tmp_path / name, *options, **PROMPT)
            running.callback(lambda: up.process.poll() is None and up.stop(signal.SIGKILL))
            return up

        yield start_one


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Receiver]:
    with receivers.running(tmp_path / "sink") as receiver:
        yield receiver


def vector(name: str) -> bytes:
    return (VECTORS / f"{name}.otlp.json").read_bytes()


def results(url: str, *arguments: str) -> Any:
    done = subprocess.run(
        command(*arguments, "--store", url, "--format", "json"),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.fault("F1")
def test_two_of_each_share_one_database(launch: Start, sink: Receiver, postgres_url: str) -> None:
    forward = ("--forward", sink.http)
    receiving = [launch("process", f"process{n}", *forward) for n in range(2)]
    working = [launch("work", f"work{n}", *forward) for n in range(2)]
    serving = [launch("serve", f"serve{n}") for n in range(2)]
    for number, name in enumerate(NAMES):
        for up in (receiving[number % 2], receiving[0]):  # half of it arrives at both
            assert up.post(vector(name)).status_code == 200
    eventually(lambda: len(serving[0].ask("/verdicts")) == len(NAMES), "a verdict for each")
    found = {each["graph_id"]: each["error_type"] for each in serving[1].ask("/verdicts")}
    assert found == {f"user:{name}": name for name in NAMES}
    hashes = [[up.ask("/hash", graph=f"user:{n}") for n in NAMES] for up in serving]
    assert hashes[0] == hashes[1]
    eventually(lambda: len(arrived(sink).attributed) == len(NAMES), "the verdicts at the sink")
    assert set(arrived(sink).attributed.values()) == {1}
    assert arrived(sink).altered() == []
    memory = {graph["graph_id"]: graph["operations"] for graph in results(postgres_url, "graphs")}
    assert memory["user:merged_wrong"] == 14
    for up in (*serving, *working, *receiving):
        assert up.stop() == 0


def test_a_flag_set_at_serve_is_judged_by_work(launch: Start, postgres_url: str) -> None:
    receiving, serving = launch("process", "process"), launch("serve", "serve")
    document = json.loads(vector("omission"))
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                kept = [a for a in span["attributes"] if not a["key"].startswith("memtrace.flag")]
                span["attributes"] = kept
                if span["name"].startswith("chat"):
                    answer = f"{span['traceId']}:{span['spanId']}"
    assert receiving.post(json.dumps(document).encode()).status_code == 200
    eventually(lambda: len(serving.ask("/graphs")) == 1, "the projection")
    launch("work", "work")
    flagged = serving.send("/flag", {"answer": answer, "expected": "Peru", "reason": "wrong"})
    assert flagged["graph_id"] == "user:omission"
    eventually(lambda: len(serving.ask("/verdicts")) == 1, "the verdict")
    (verdict,) = results(postgres_url, "verdicts")
    assert verdict["graph_id"] == "user:omission"


@pytest.mark.fault("F1")
def test_a_killed_process_goes_on_in_its_own_log(launch: Start) -> None:
    first = launch("process", "process")
    assert first.post(vector("omission")).status_code == 200
    first.stop(signal.SIGKILL)
    again = launch("process", "process")
    assert again.post(vector("merged_wrong")).status_code == 200

    def graphs() -> dict[str, int]:
        return {row["graph_id"]: row["operations"] for row in again.ask("/graphs")}

    eventually(lambda: graphs() == {"user:omission": 9, "user:merged_wrong": 14}, "both graphs")
    assert again.stop() == 0


def test_commands_without_a_log_say_so(postgres_url: str) -> None:
    file = VECTORS / "omission.otlp.json"
    done = subprocess.run(
        command("import", str(file), "--store", postgres_url),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "memtrace-otel process" in done.stderr


def arrived(sink: Receiver) -> Arrived:
    records: list[LogRecord] = sink.records()
    return Arrived(records)
