"""Many large requests at once: what a running `up` takes of the machine's memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest

from tests.benchmarks.ack_clients import EXPORT
from tests.benchmarks.process_tree import tree
from tests.memtrace_collector.processor.spans import attribute, memory_span, request
from tests.memtrace_collector.running import Up, eventually, start_up

SENDERS = 32
REQUESTS = 4
"""Of each sender."""
SPANS = 100
VALUE_CHARS, PROMPT_CHARS = 2_500, 7_500
"""Of each span: what is kept as a value, and what is only forwarded."""
MOST_MB = 300.0


def body(number: int) -> bytes:
    """A request of 1 MB, another for every number."""
    spans = []
    for n in range(1, SPANS + 1):
        ref = f"msg:{number}/{n}@a"
        values = {ref: f"{number} {n} ".ljust(VALUE_CHARS, "x")}
        span = memory_span(number, n, "ingest", outputs=[ref], values=values)
        span.attributes.append(attribute("input.value", "y" * PROMPT_CHARS))
        spans.append(span)
    return bytes(request(*spans).SerializeToString())


@contextmanager
def running(folder: Path) -> Iterator[Up]:
    up = start_up(folder / "store")
    try:
        yield up
    finally:
        up.stop()


@pytest.mark.fault("F21")
@pytest.mark.parametrize("door", ["http", "grpc"])
def test_a_burst_of_large_requests_is_taken_in_less_than_300_mb(tmp_path: Path, door: str) -> None:
    bodies = [body(number) for number in range(1, SENDERS * REQUESTS + 1)]
    with running(tmp_path) as up:
        send = over_http if door == "http" else over_grpc
        with ThreadPoolExecutor(SENDERS) as senders:
            sent = [senders.submit(send, up, bodies[n::SENDERS]) for n in range(SENDERS)]
        for each in sent:
            each.result()
        eventually(lambda: _lag(up) == 0, "all is projected")
        assert up.ask("/graphs")[0]["operations"] == SENDERS * REQUESTS * SPANS
        peaks = {pid: _peak_mb(pid) for pid in tree(up.process.pid)}
    assert len(peaks) == 2 and sum(peaks.values()) < MOST_MB, peaks


def over_http(up: Up, bodies: list[bytes]) -> None:
    with httpx.Client(timeout=60) as client:
        for each in bodies:
            url = f"{up.addresses['otlp_http']}/v1/traces"
            headers = {"content-type": "application/x-protobuf"}
            client.post(url, content=each, headers=headers).raise_for_status()


def over_grpc(up: Up, bodies: list[bytes]) -> None:
    with grpc.insecure_channel(up.addresses["otlp_grpc"]) as channel:
        export = channel.unary_unary(EXPORT)
        for each in bodies:
            export(each, timeout=60)


def _lag(up: Up) -> float:
    found = re.search(r"^memtrace_projection_lag\S* (\S+)$", up.metrics(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
