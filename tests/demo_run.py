"""The demo command, as a stranger runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read
from tests.http_client import CLIENT

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "memtrace_collector"]


@dataclass(frozen=True)
class DemoRun:
    """The demo command, run once: what it printed and wrote."""

    exit_code: int
    printed: str
    cases: list[dict[str, Any]]
    store: Path
    seconds: float

    def records(self) -> list[LogRecord]:
        """What its log holds: every span, then the flags of its answers."""
        return [entry.record for entry in read(self.store / "log", START)]


def run_demo(folder: Path, *arguments: str) -> DemoRun:
    output = folder / "cases.json"
    started = time.monotonic()
    done = subprocess.run(
        [*COMMAND, "demo", "--store", str(folder / "demo"), "--output", str(output), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert output.exists(), done.stderr
    return DemoRun(
        exit_code=done.returncode,
        printed=done.stdout,
        cases=json.loads(output.read_text("utf-8"))["cases"],
        store=folder / "demo",
        seconds=time.monotonic() - started,
    )


def send_again(demo: DemoRun, otlp_http: str) -> None:
    """Everything that the demo sent, flags last, to another receiver; in a fraction of the time
    that a run of the demo takes."""
    for record in demo.records():
        CLIENT.post(
            f"{otlp_http}/v1/{record.signal}",
            content=record.body,
            headers={"content-type": "application/x-protobuf"},
        ).raise_for_status()
