"""The same payload into Phoenix and MLflow, from PyPI, in environments of their own."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import rag_traces
from tests.benchmarks.process_tree import tree, usage
from tests.benchmarks.sending import Load
from tests.components import CACHE

SPANS = 3_600
WARM_UP_SPANS = 240
_START_SECONDS = 240.0
_STALLED_SECONDS = 60.0
_STOP_SECONDS = 20.0


class Figures(NamedTuple):
    """``visible``: spans/s until visible. ``cpu``: ms per 1,000 spans. ``megabytes``: peak."""

    name: str
    visible: float
    cpu: float
    megabytes: float


@dataclass(frozen=True)
class Peer:
    """A server, how it is started, and how many spans it shows."""

    name: str
    package: str
    folder: Path
    port: int
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, programs: Path) -> subprocess.Popen[bytes]:
        """Start it and wait until it answers."""
        environment = dict(os.environ) | self._environment()
        environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                self._command(programs), env=environment, stdout=log, stderr=log, cwd=self.folder
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit(f"{self.name}: {(self.folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.3)
        return process

    def visible(self) -> int:
        raise NotImplementedError

    def _answers(self) -> bool:
        url = f"{self.url}{self._health}"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == http.client.OK)
        return False

    @property
    def _health(self) -> str:
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        raise NotImplementedError

    def _command(self, programs: Path) -> list[str]:
        raise NotImplementedError


class Phoenix(Peer):
    """Arize Phoenix on SQLite."""

    _health = "/healthz"

    def visible(self) -> int:
        query = json.dumps({"query": "{projects(first:100){edges{node{recordCount}}}}"})
        request = urllib.request.Request(
            f"{self.url}/graphql", query.encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            edges = json.load(response)["data"]["projects"]["edges"]
        return sum(edge["node"]["recordCount"] for edge in edges)

    def _environment(self) -> dict[str, str]:
        return {
            "PHOENIX_WORKING_DIR": str(self.folder),
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(_free_port()),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }

    def _command(self, programs: Path) -> list[str]:
        return [str(programs / "phoenix"), "serve"]


class MLflow(Peer):
    """MLflow's tracking server on SQLite, one worker."""

    _health = "/health"

    def visible(self) -> int:
        uri = f"file:{self.folder}/mlflow.db?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM spans").fetchone()[0])

    def _environment(self) -> dict[str, str]:
        return {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}

    def _command(self, programs: Path) -> list[str]:
        place = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        database = f"sqlite:///{self.folder}/mlflow.db"
        store = ["--backend-store-uri", database, "--default-artifact-root", f"{self.folder}/art"]
        return [str(programs / "mlflow"), "server", *place, *store]


def compare(own: Figures, folder: Path) -> None:
    """Measure both and print how many times ours does better."""
    rows = [own]
    for kind, package, headers in (
        (Phoenix, "arize-phoenix", {}),
        (MLflow, "mlflow", {"x-mlflow-experiment-id": "0"}),
    ):
        place = folder / package
        place.mkdir()
        rows.append(_measure(kind(package, package, place, _free_port(), headers)))
    print(f"\n{'':<16} {'visible spans/s':>16} {'ours':>8} {'CPU ms/1k':>11} {'ours':>8} {'MB':>7}")
    for row in rows:
        faster, cheaper = own.visible / max(row.visible, 1e-9), row.cpu / max(own.cpu, 1e-9)
        print(
            f"{row.name:<16} {row.visible:16,.0f} {faster:7.0f}x {row.cpu:11,.1f} {cheaper:7.0f}x"
            f" {row.megabytes:7,.0f}"
        )


def _measure(peer: Peer) -> Figures:
    load = rag_traces.requests(24, service="bench")
    with _running(peer) as process:
        _send(peer, load, WARM_UP_SPANS, 1)
        known = _settled(peer, WARM_UP_SPANS)
        before, start = usage(process.pid).cpu, time.monotonic()
        sent = _send(peer, load, SPANS, 1_000)
        end = start
        seen = last = known
        moved = time.monotonic()
        while seen < known + sent and time.monotonic() - moved < _STALLED_SECONDS:
            time.sleep(0.2)
            seen = peer.visible()
            if seen != last:
                last, moved = seen, time.monotonic()
        end = moved
        used = usage(process.pid)
    shown = seen - known
    return Figures(
        peer.name, shown / (end - start), (used.cpu - before) / sent * 1e6, used.megabytes
    )


def _send(peer: Peer, load: list[rag_traces.Request], spans: int, first: int) -> int:
    count = -(-spans // load[0].spans)
    run = Load(peer.url, load, 4, 0, lambda number, _: number < count, peer.headers, first)
    return run.run().spans


def _settled(peer: Peer, spans: int) -> int:
    """What it shows once the warm-up is in."""
    deadline = time.monotonic() + _STALLED_SECONDS
    while (seen := peer.visible()) < spans and time.monotonic() < deadline:
        time.sleep(0.2)
    return seen


@contextmanager
def _running(peer: Peer) -> Iterator[subprocess.Popen[bytes]]:
    process = peer.start(_programs(peer.package))
    try:
        yield process
    finally:
        for member in reversed(list(tree(process.pid))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _programs(package: str) -> Path:
    """The programs of a package, installed on first use into an environment of its own."""
    environment = CACHE / "peers" / package
    programs = environment / "bin"
    if not (environment / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", package]
        subprocess.run(pip, check=True)
        (environment / "installed").touch()
    return programs


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
