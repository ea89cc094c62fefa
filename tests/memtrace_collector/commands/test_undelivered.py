"""A verdict that its destination does not take is seen, and can be sent again."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.memtrace_collector.running import (
    DEADLINE_SECONDS,
    VECTORS,
    Up,
    command,
    environment,
    eventually,
    start_up,
)


class Sink(ThreadingHTTPServer):
    """Takes what it is sent, or answers with ``status`` to everything."""

    daemon_threads = True

    def __init__(self, status: int = 200, location: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.status = status
        self.location = location
        self.bodies: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answering(BaseHTTPRequestHandler):
    server: Sink

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(body)
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("location", self.server.location + self.path)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def sink(status: int = 200, location: str = "") -> Iterator[Sink]:
    server = Sink(status, location)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def up_forwarding_to(folder: Path, url: str) -> Iterator[Up]:
    up = start_up(folder / "store", "--forward", url)
    try:
        up.post((VECTORS / "overwritten.otlp.json").read_bytes()).raise_for_status()
        yield up
    finally:
        up.stop()


def verdicts(folder: Path, *arguments: str) -> str:
    line = command("verdicts", "--store", str(folder / "store"), *arguments)
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        env=environment(),
        check=True,
    )
    return done.stdout


@pytest.mark.fault("F22", "F38")
def test_what_is_refused_for_ever_is_listed_counted_and_sent_again_as_it_was(
    tmp_path: Path,
) -> None:
    with sink(400) as refusing, up_forwarding_to(tmp_path, refusing.url) as up:
        eventually(lambda: len(up.ask("/undelivered")) == 4, "four rows given up")
        refused = refusing.bodies[:]
        rows = json.loads(verdicts(tmp_path, "--undelivered", "--format", "json"))
        assert {row["error"] for row in rows} == {"HTTP 400"}
        assert verdicts(tmp_path, "--undelivered").count("HTTP 400") == 4
        metrics = httpx.get(f"{up.addresses['api']}/metrics").text
        assert 'memtrace_outbox_depth{state="abandoned"} 4.0' in unlabelled(metrics)
        refusing.status = 200
        refusing.bodies.clear()
        assert verdicts(tmp_path, "--redeliver") == "4 deliveries are due again\n"
        eventually(lambda: len(refusing.bodies) >= 4, "all of them sent again")
        assert set(refusing.bodies) <= set(refused), "byte for byte"
        eventually(lambda: up.ask("/undelivered") == [], "nothing is left undelivered")


@pytest.mark.fault("F36")
def test_no_redirect_of_a_destination_is_followed(tmp_path: Path) -> None:
    with (
        sink() as elsewhere,
        sink(307, elsewhere.url) as redirecting,
        up_forwarding_to(tmp_path, redirecting.url) as up,
    ):
        eventually(lambda: len(up.ask("/undelivered")) == 4, "four rows given up")
        assert redirecting.bodies and elsewhere.bodies == []


def unlabelled(metrics: str) -> str:
    """Without what every line says of its scope."""
    lines = (line for line in metrics.splitlines() if line.startswith("memtrace_outbox_depth{"))
    return "\n".join(
        f'memtrace_outbox_depth{{state="{line.split("state=")[1].split(chr(34))[1]}"}} '
        f"{line.rpartition(' ')[2]}"
        for line in lines
    )
