"""`memtrace-otel up` as a real process, for tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.http_client import CLIENT

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "contract" / "vectors"
DEADLINE_SECONDS = 30.0


def environment(**more: str) -> dict[str, str]:
    """The environment of a subprocess that finds this checkout and no settings of ours."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MEMTRACE_", "OTEL_"))}
    return clean | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'collector'}"} | more


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "memtrace_collector", *arguments]


@dataclass(frozen=True)
class Up:
    """A running `up`: its process, and the addresses that it printed."""

    process: subprocess.Popen[str]
    addresses: Mapping[str, Any]

    def post(self, body: bytes, content_type: str = "application/json") -> httpx.Response:
        """One OTLP/HTTP trace export."""
        return CLIENT.post(
            f"{self.addresses['otlp_http']}/v1/traces",
            content=body,
            headers={"content-type": content_type},
        )

    def ask(self, path: str, **parameters: str) -> Any:
        response = CLIENT.get(f"{self.addresses['api']}/api/v1{path}", params=parameters)
        response.raise_for_status()
        return response.json()

    def send(self, path: str, body: dict[str, Any]) -> Any:
        url = f"{self.addresses['api']}/api/v1{path}"
        response = CLIENT.post(url, json=body)
        response.raise_for_status()
        return response.json()

    def metrics(self) -> str:
        return CLIENT.get(f"{self.addresses['api']}/metrics").text

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(DEADLINE_SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        return code


def start_up(store: Path, *arguments: str, **more: str) -> Up:
    """Start `up` on free ports and wait for the line that says where it listens."""
    receiving = ("--grpc-port", "0", "--http-port", "0")
    return start("up", store, "--store", str(store), *receiving, *arguments, **more)


def start(role: str, name: Path, *arguments: str, **more: str) -> Up:
    """Start a part of `up` with its API on a free port; what it logs stands beside ``name``."""
    line = command(role, "--format", "json", "--api-port", "0", *arguments)
    log_file = name.parent / f"{name.name}.up.log"
    with log_file.open("a") as log:
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=log, text=True, env=environment(**more)
        )
    assert process.stdout is not None
    announced = process.stdout.readline()
    if not announced:
        process.wait(DEADLINE_SECONDS)
        raise AssertionError(log_file.read_text())
    return Up(process, json.loads(announced))


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Poll until ``holds``, at most DEADLINE_SECONDS."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Child processes, whichever thread started them."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def is_running(pid: int) -> bool:
    """Neither gone nor dead and not yet waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
