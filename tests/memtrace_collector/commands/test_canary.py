"""The canary against real processes: it must sing, and it must be able to fail."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.commands.canary_rounds import CHECKS, Round
from memtrace_collector.commands.canary_trace import GRAPH_PREFIX, planted
from memtrace_collector.exporter.delivery import Delivery
from tests.memtrace_collector.running import Up, command, environment, start_up


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    running = start_up(tmp_path_factory.mktemp("canary") / "store")
    yield running
    running.stop()


def sing(endpoint: str, api: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = command("canary", "--endpoint", endpoint, "--api", api, *arguments)
    return subprocess.run(
        line, env=environment(), capture_output=True, text=True, check=False, timeout=60
    )


def checks(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.mark.parametrize("door", ["otlp_http", "otlp_grpc"])
def test_a_planted_failure_is_found_linked_and_attributed(up: Up, door: str) -> None:
    endpoint = up.addresses[door]
    endpoint = endpoint if "://" in endpoint else f"grpc://{endpoint}"
    done = sing(endpoint, up.addresses["api"], "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = checks(done)
    assert list(found) == list(CHECKS)
    assert all(check["ok"] for check in found.values())
    seconds = [check["seconds"] for check in found.values()]
    assert seconds == sorted(seconds)


def test_a_text_says_each_check_and_how_long_it_took(up: Up) -> None:
    done = sing(up.addresses["otlp_http"], up.addresses["api"])
    assert done.returncode == 0
    assert done.stdout.startswith(GRAPH_PREFIX)
    assert all(name in done.stdout for name in CHECKS)
    assert done.stdout.count(" ms") == len(CHECKS)


def test_what_was_planted_is_erased_unless_it_is_to_be_kept(up: Up) -> None:
    doors = up.addresses["otlp_http"], up.addresses["api"]
    kept = json.loads(sing(*doors, "--keep", "--format", "json").stdout)["graph_id"]
    gone = json.loads(sing(*doors, "--format", "json").stdout)["graph_id"]
    graphs = {row["graph_id"] for row in up.ask("/graphs")}
    assert kept in graphs
    assert gone not in graphs


def test_spans_that_arrive_elsewhere_are_a_finding(up: Up, tmp_path: Path) -> None:
    other = start_up(tmp_path / "other")
    done = sing(
        other.addresses["otlp_http"], up.addresses["api"], "--deadline", "1", "--format", "json"
    )
    assert other.stop() == 0
    assert done.returncode == 1
    found = checks(done)
    assert found["accepted"]["ok"]
    assert not found["found"]["ok"]
    assert "linked" not in found


def test_nobody_there_is_unreachable(up: Up) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
        for endpoint, api in (
            (nowhere, up.addresses["api"]),
            (up.addresses["otlp_http"], nowhere),
        ):
            done = sing(endpoint, api, "--deadline", "0.5", "--format", "json")
            assert done.returncode == 3, done.stdout + done.stderr


def test_an_endpoint_that_is_none_is_wrong_use(up: Up) -> None:
    done = sing("ftp://localhost", up.addresses["api"])
    assert done.returncode == 2
    assert "--endpoint" in done.stderr


def test_with_an_interval_it_goes_on_until_a_signal(up: Up) -> None:
    line = command(
        "canary",
        *("--endpoint", up.addresses["otlp_http"], "--api", up.addresses["api"]),
        *("--interval", "0.1", "--format", "json"),
    )
    process = subprocess.Popen(line, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        rounds = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
    assert process.wait(30) == 0
    assert [each["ok"] for each in rounds] == [True, True]
    assert rounds[0]["graph_id"] == rounds[1]["graph_id"]


class Silent:
    """Takes everything, and knows of nothing but another verdict."""

    def __init__(self, **verdict: object) -> None:
        self.trace = planted("canary:x", time.time_ns(), random.Random(1))
        trace_id, _, span_id = self.trace.answer.partition(":")
        right = {
            "answer": {"traceId": trace_id, "spanId": span_id},
            "stage": "update",
            "error_type": "overwritten",
            "decisive": [self.trace.author],
        }
        self._verdict = right | verdict

    def send(self, signal: str, payload: bytes) -> Delivery:
        return Delivery("delivered")

    def ancestry(self, answer: str) -> dict[str, Any]:
        operations = [self.trace.author]
        return {"graph_id": "canary:x", "lineage": "complete", "operations": operations}

    def verdicts(self, *_: str) -> list[dict[str, Any]]:
        return [self._verdict]


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        ({}, ""),
        ({"error_type": "merged_wrong"}, "the verdict is update/merged_wrong"),
        ({"decisive": []}, "the verdict names another span"),
        ({"answer": {"traceId": "0", "spanId": "0"}}, "there is no verdict"),
    ],
)
def test_only_the_right_verdict_passes(verdict: dict[str, object], says: str) -> None:
    silent = Silent(**verdict)
    one = Round(silent, silent, 0.0)  # type: ignore[arg-type]  # only what a round asks
    *_, last = one.checks("canary:x", random.Random(1))
    assert last.name == "attributed"
    assert last.ok is (not says)
    assert says in last.says
