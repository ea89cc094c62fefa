from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from memtrace_collector.receiver.decode import decode
from tests.memtrace_collector.running import (
    VECTORS,
    Up,
    command,
    environment,
    eventually,
    start_up,
)

MERGED = VECTORS / "merged_wrong.otlp.json"
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def results(*arguments: str) -> Any:
    done = run(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    running = start_up(tmp_path / "store")
    yield running
    if running.process.poll() is None:
        running.stop()


def test_spans_over_http_and_grpc_become_graphs_and_verdicts(up: Up) -> None:
    assert up.post(MERGED.read_bytes()).status_code == 200
    body = decode("traces", "json", (VECTORS / "omission.otlp.json").read_bytes())
    with grpc.insecure_channel(up.addresses["otlp_grpc"]) as channel:
        channel.unary_unary(EXPORT)(body.SerializeToString(), timeout=20)
    eventually(lambda: len(up.ask("/verdicts")) == 2, "a verdict for each flagged answer")
    found = {item["graph_id"]: item["error_type"] for item in up.ask("/verdicts")}
    assert found == {"user:merged_wrong": "merged_wrong", "user:omission": "omission"}


def test_commands_ask_the_running_process_through_its_api(up: Up, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    done = run("import", str(MERGED), "--store", store)
    assert done.returncode == 0, done.stderr
    (graph,) = results("graphs", "--store", store)
    assert graph["graph_id"] == "user:merged_wrong"
    assert graph["operations"] == 14
    (verdict,) = results("attribute", "--store", store)
    assert verdict["error_type"] == "merged_wrong"
    assert up.process.poll() is None


def test_a_restart_keeps_everything(up: Up, tmp_path: Path) -> None:
    assert up.post(MERGED.read_bytes()).status_code == 200
    eventually(lambda: len(up.ask("/verdicts")) == 1, "the verdict")
    before = up.ask("/verdicts"), up.ask("/hash", graph="user:merged_wrong")
    assert up.stop() == 0
    again = start_up(tmp_path / "store")
    assert (again.ask("/verdicts"), again.ask("/hash", graph="user:merged_wrong")) == before
    assert again.stop(signal.SIGINT) == 0


def test_what_was_acknowledged_is_projected_before_a_clean_end(up: Up, tmp_path: Path) -> None:
    assert up.post(MERGED.read_bytes()).status_code == 200
    assert up.stop() == 0
    assert not (tmp_path / "store" / "owner.json").exists()
    (graph,) = results("graphs", "--store", str(tmp_path / "store"))
    assert graph["operations"] == 14


def test_after_a_kill_the_folder_opens_again(up: Up, tmp_path: Path) -> None:
    assert up.post(MERGED.read_bytes()).status_code == 200
    up.stop(signal.SIGKILL)
    assert (tmp_path / "store" / "owner.json").exists()
    (graph,) = results("graphs", "--store", str(tmp_path / "store"))
    assert graph["operations"] == 14


def test_a_second_up_on_the_folder_is_refused(up: Up, tmp_path: Path) -> None:
    done = run("up", "--store", str(tmp_path / "store"), "--api-port", "0")
    assert done.returncode == 3
    assert f"memtrace-otel up (process {up.addresses['pid']})" in done.stderr


def test_a_taken_port_is_named_and_nothing_is_left_running(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for option in ("--grpc-port", "--http-port", "--api-port"):
            ports = {"--grpc-port": "0", "--http-port": "0", "--api-port": "0"} | {option: port}
            flat = [part for pair in ports.items() for part in pair]
            done = run("up", "--store", str(tmp_path / "store"), *flat)
            assert done.returncode == 3, done.stderr
            assert port in done.stderr
            assert "Traceback" not in done.stderr


def test_an_address_that_others_reach_is_refused(tmp_path: Path) -> None:
    done = run("up", "--store", str(tmp_path / "store"), "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "--allow-remote" in done.stderr


def test_metrics_count_what_came_in_without_naming_owners(up: Up) -> None:
    assert up.post(MERGED.read_bytes()).status_code == 200
    eventually(lambda: len(up.ask("/verdicts")) == 1, "the verdict")
    text = httpx.get(f"{up.addresses['api']}/metrics").text
    assert "memtrace_verdicts{" in text
    assert 'type="merged_wrong"' in text
    assert "memtrace_operations_total{" in text
    assert "user:merged_wrong" not in text


def test_spans_and_verdicts_go_on_to_the_destination_once(tmp_path: Path) -> None:
    end = start_up(tmp_path / "end")
    first = start_up(tmp_path / "first", "--forward", end.addresses["otlp_http"])
    assert first.post(MERGED.read_bytes()).status_code == 200
    assert first.post(MERGED.read_bytes()).status_code == 200
    eventually(lambda: len(first.ask("/verdicts")) == 1, "the verdict")
    assert first.stop() == 0
    eventually(lambda: len(end.ask("/graphs")) == 1, "the forwarded spans")
    (graph,) = end.ask("/graphs")
    assert graph["operations"] == 14
    values = json.loads(
        httpx.get(
            f"{end.addresses['api']}/api/v1/graph",
            params={"graph": "user:merged_wrong", "format": "json"},
        ).text
    )["values"]
    assert values == {}
    assert end.stop() == 0


def test_an_end_is_not_held_up_by_a_destination_that_is_gone(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        for number, listener in enumerate((silent, closed)):
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            running = start_up(tmp_path / f"store{number}", "--forward", url)
            assert running.post(MERGED.read_bytes()).status_code == 200
            eventually(lambda up=running: len(up.ask("/verdicts")) == 1, "the verdict")
            began = time.monotonic()
            assert running.stop() == 0
            assert time.monotonic() - began < 10


def test_verdicts_go_to_a_destination_that_came_later(tmp_path: Path) -> None:
    first = start_up(tmp_path / "first")
    assert first.post(MERGED.read_bytes()).status_code == 200
    eventually(lambda: len(first.ask("/verdicts")) == 1, "the verdict")
    assert first.stop() == 0
    end = start_up(tmp_path / "end")
    again = start_up(tmp_path / "first", "--forward", end.addresses["otlp_http"])

    def delivered() -> bool:
        text = httpx.get(f"{again.addresses['api']}/metrics").text
        return bool(re.search(r'memtrace_outbox_depth\{.*state="delivered".*\} 4\.0', text))

    eventually(delivered, "the rows of the older verdict")
    assert again.stop() == 0
    assert end.stop() == 0


def test_settings_come_from_the_environment_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "memtrace.yaml"
    file.write_text(f"store: {tmp_path / 'from_file'}\n")
    running = subprocess.Popen(
        command("up", "--config", str(file), "--format", "json"),
        env=environment(MEMTRACE_GRPC_PORT="0", MEMTRACE_HTTP_PORT="0", MEMTRACE_API_PORT="0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert running.stdout is not None
    with running.stdout:
        addresses = json.loads(running.stdout.readline())
    assert addresses["store"] == str(tmp_path / "from_file")
    os.kill(running.pid, signal.SIGTERM)
    assert running.wait(30) == 0
