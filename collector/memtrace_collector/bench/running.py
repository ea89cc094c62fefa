"""Pipelines as programs of their own, their spans received by the real receiver.

Each unit has a data folder of its own, as `up` keeps one, without worker and forwarding.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from memtrace_collector.bench.folder import Unit, write_whole
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.config import Config
from memtrace_collector.errors import UnreachableError
from memtrace_collector.receiver.server import Listen, ReceiverServer
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.telemetry.metrics import NULL_METRICS

STALL_SECONDS = 300.0
"""A pipeline that ends no case for so long is given up."""
_POLL_SECONDS = 0.2
_STOP_SECONDS = 20.0
_TAIL_LINES = 15
_PROBE_SECONDS = 120.0
_MEM0 = {"mem0-1": "1.", "mem0-2": "2."}
_PROBE = """
import importlib.metadata, sys
import {0}
found = importlib.metadata.version("mem0ai") if "{1}" else ""
if not found.startswith("{1}"):
    sys.exit("mem0ai " + found + " is installed, {1}x is needed")
"""
_NOT_INHERITED = ("OTEL_", "MEMTRACE_", "OPENAI_", "MEM0_")

OnCase = Callable[[str, int, int], object]
"""System, cases that have ended, and of how many."""


def module_of(system: str) -> str:
    """The program of a system's pipeline."""
    return f"memtrace_collector.bench.pipelines.{system.replace('-', '_')}"


def why_missing(python: str, system: str) -> str:
    """Why this interpreter cannot run a system's pipeline; empty: it can."""
    command = [python, "-c", _PROBE.format(module_of(system), _MEM0.get(system, ""))]
    try:
        probe = subprocess.run(  # noqa: S603 - an interpreter that the user named, a fixed module
            command,
            env=_environment(os.environ),
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{python}: {error}"
    if not probe.returncode:
        return ""
    return (probe.stderr.strip().splitlines() or [f"exit code {probe.returncode}"])[-1]


def run_unit(
    unit: Unit,
    cases: Sequence[PlannedCase],
    python: str,
    stop: threading.Event,
    on_case: OnCase,
) -> None:
    """Run the cases of one system and record what they send.

    Returns early when ``stop`` is set; what ended by then is kept.

    Raises:
        UnreachableError: the program failed or stalled; the message ends with its last words.
    """
    unit.traces.mkdir(parents=True, exist_ok=True)
    unit.outcomes_path.parent.mkdir(parents=True, exist_ok=True)
    plan = unit.traces / "plan.json"
    write_whole(plan, msgspec.json.encode(list(cases)))
    with _receiver(unit.traces) as (endpoint, folder):
        command = [
            python, "-m", module_of(unit.system),
            "--plan", str(plan), "--outcomes", str(unit.outcomes_path),
        ]  # fmt: skip
        environment = _environment(os.environ, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        log = unit.traces / "pipeline.log"
        with _program(command, environment, log) as process:
            _follow(process, unit, len(cases), stop, on_case)
        folder.project()
    if process.returncode and not stop.is_set():
        raise UnreachableError(_failure(unit, process.returncode, log))


@contextmanager
def _receiver(folder: Path) -> Iterator[tuple[str, DataFolder]]:
    with closing(DataFolder(folder, Config(), NULL_METRICS)) as data:
        server = ReceiverServer(data.ingest, Listen(grpc_port=0, http_port=0))
        server.start()
        try:
            yield f"http://127.0.0.1:{server.http_port}", data
        finally:
            server.stop()


@contextmanager
def _program(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A program whose output goes to ``log``; it has ended when the context does."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - an interpreter that the user named
            command, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _follow(
    process: subprocess.Popen[bytes],
    unit: Unit,
    total: int,
    stop: threading.Event,
    on_case: OnCase,
) -> None:
    done, since = 0, time.monotonic()
    while process.poll() is None and not stop.wait(_POLL_SECONDS):
        ended = _lines(unit.outcomes_path)
        if ended > done:
            done, since = ended, time.monotonic()
            on_case(unit.system, done, total)
        elif time.monotonic() - since > STALL_SECONDS:
            raise UnreachableError(
                f"the {unit.system} pipeline ended no case for {STALL_SECONDS:.0f} s"
            )
    on_case(unit.system, _lines(unit.outcomes_path), total)


def _lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def _environment(inherited: Mapping[str, str], **more: str) -> dict[str, str]:
    """Without settings of the user's own; loopback is never sent through a proxy."""
    kept = {n: v for n, v in inherited.items() if not n.startswith(_NOT_INHERITED)}
    loopback = ",".join(filter(None, (kept.get("NO_PROXY", ""), "127.0.0.1,localhost")))
    return {
        **kept,
        "NO_PROXY": loopback,
        "no_proxy": loopback,
        "MEM0_TELEMETRY": "False",
        "PYTHONPATH": os.pathsep.join(filter(None, (*_checkout(), kept.get("PYTHONPATH", "")))),
        **more,
    }


def _checkout() -> tuple[str, ...]:
    """Where this package lies when it runs from a checkout, for other interpreters."""
    collector = Path(__file__).parents[2]
    root = collector.parent
    return (str(root), str(collector)) if (root / "pyproject.toml").exists() else ()


def _failure(unit: Unit, code: int, log: Path) -> str:
    tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-_TAIL_LINES:])
    return f"the {unit.system} pipeline ended with exit code {code}; the end of {log}:\n{tail}"


def interpreters(mem0_2_python: str | None) -> Callable[[str], str]:
    """Which interpreter runs a system: mem0 1.x and 2.x cannot share one."""

    def python_of(system: str) -> str:
        return mem0_2_python if system == "mem0-2" and mem0_2_python else sys.executable

    return python_of
