"""The demo command, as a stranger runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
