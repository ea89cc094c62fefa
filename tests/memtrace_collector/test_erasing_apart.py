"""`erase` over one PostgreSQL: the rows, and the log of every process that feeds it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.store.postgres.facts import PostgresFactStore
from tests.memtrace_collector.commands.test_erase import everything, words
from tests.memtrace_collector.running import VECTORS, Up, command, environment, eventually, start

GRAPH, KEPT = "user:omission", "user:overwritten"
BESIDE = "what another library saw of the same trace"
REASON = "it was a peach and no plum"
Start = Callable[..., Up]
Erase = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def process(tmp_path: Path, postgres_url: str) -> Iterator[Start]:
    with ExitStack() as running:

        def start_one(name: str, role: str = "process") -> Up:
            folder = tmp_path / name
            ports = ("--grpc-port", "0", "--http-port", "0") if role == "process" else ()
            up = start(role, folder, "--store", postgres_url, "--log", str(folder), *ports)
            running.callback(lambda: up.process.poll() is None and up.stop(signal.SIGKILL))
            return up

        yield start_one


@pytest.fixture
def erase(postgres_url: str) -> Erase:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command("erase", *arguments, "--yes", "--store", postgres_url),
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    return run


def vector(name: str) -> bytes:
    return (VECTORS / f"{name}.otlp.json").read_bytes()


def spans(name: str) -> list[dict[str, Any]]:
    resources = json.loads(vector(name))["resourceSpans"]
    return [s for resource in resources for scope in resource["scopeSpans"] for s in scope["spans"]]


def answer(name: str) -> str:
    """The answer of a vector, as the API names it."""
    chat = next(span for span in spans(name) if span["name"].startswith("chat"))
    return f"{chat['traceId']}:{chat['spanId']}"


def beside(name: str) -> bytes:
    """A span of no operation, in the trace of the vector's first span."""
    text = {"key": "gen_ai.prompt", "value": {"stringValue": f"{BESIDE}: {name}"}}
    span = {
        "traceId": spans(name)[0]["traceId"],
        "spanId": "ab" * 8,
        "name": "chat other",
        "attributes": [text],
    }
    times = {"startTimeUnixNano": "1790000000000000000", "endTimeUnixNano": "1790000000000000001"}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span | times]}]}]}).encode()


def graphs(up: Up) -> dict[str, int]:
    return {row["graph_id"]: row["operations"] for row in up.ask("/graphs")}


def said_only_in(name: str, other: str) -> list[str]:
    return [text for text in words(name) if text not in words(other)]


def assert_nothing_of_it(folder: Path) -> None:
    left = everything(folder)
    said = said_only_in("omission", "overwritten")
    for text in (GRAPH, f"{BESIDE}: omission", REASON, *said):
        assert text.encode() not in left


def test_an_erasure_goes_through_the_log_of_every_process(
    process: Start, erase: Erase, tmp_path: Path
) -> None:
    one, two, three = process("one"), process("two"), process("three", "serve")
    for up, body in (
        (one, vector("omission")),
        (one, vector("overwritten")),
        (two, vector("omission")),
        (two, beside("omission")),
        (two, beside("overwritten")),
        (two, vector("merged_wrong")),
    ):
        assert up.post(body).status_code == 200
    eventually(lambda: len(graphs(one)) == 3, "all graphs")
    three.send("/flag", {"answer": answer("omission"), "expected": "Peru", "reason": REASON})
    assert REASON.encode() in everything(tmp_path / "three")
    kept = {name: count for name, count in graphs(one).items() if name != GRAPH}
    assert GRAPH.encode() in everything(tmp_path / "two")
    done = erase(GRAPH, "--format", "json")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert (result["left"], result["unconfirmed"]) == ({}, [])
    assert result["erased"]["operations"] == 9
    assert result["erased"]["records"] == 4
    assert result["searched"]["logs"] == 3
    assert "VACUUM FULL" in result["note"]
    assert graphs(two) == kept
    for name in ("one", "two", "three"):
        assert_nothing_of_it(tmp_path / name)
    assert two.post(vector("omission")).status_code == 200
    eventually(lambda: graphs(one) == kept | {GRAPH: 9}, "what comes in again is new")
    assert BESIDE.encode() in everything(tmp_path / "two")
    assert one.send("/erase", {"graph": KEPT})["left"] == {}
    assert KEPT not in graphs(two) and BESIDE.encode() not in everything(tmp_path / "two")


@pytest.mark.fault("F1")
def test_a_process_that_did_not_run_erases_when_it_does(
    process: Start, erase: Erase, tmp_path: Path, postgres_url: str
) -> None:
    one, two = process("one"), process("two")
    for up, name in ((one, "overwritten"), (two, "omission")):
        assert up.post(vector(name)).status_code == 200
    eventually(lambda: len(graphs(one)) == 2, "both graphs")
    two.stop(signal.SIGKILL)
    log_id = (tmp_path / "two" / "log" / "id").read_text()
    done = erase(GRAPH, "--wait", "3")
    assert done.returncode == 1, done.stderr
    assert f"not confirmed in time: {log_id}" in done.stdout
    assert f"waiting for 1 logs: {log_id}" in done.stderr.splitlines()[-1]
    assert KEPT in graphs(one) and GRAPH not in graphs(one)
    without = erase(GRAPH, "--gone", log_id)
    assert without.returncode == 0, without.stdout
    again = process("two")
    with closing(PostgresFactStore(postgres_url, log_id=log_id)) as orders:
        eventually(lambda: not orders.open_erasures(), "the order is carried out")
    assert_nothing_of_it(tmp_path / "two")
    assert graphs(again) == graphs(one) and GRAPH not in graphs(one)
