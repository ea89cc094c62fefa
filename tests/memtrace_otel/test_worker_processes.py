"""Operations in worker processes: sequence and export after a fork and after a spawn."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("worker_program.py")
EACH = 20


@functools.cache
def run(method: str) -> dict[str, list[dict[str, Any]]]:
    """The spans that the program's processes exported, by process id."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", PROGRAM, method, str(EACH)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT), "MEMTRACE_RAISE_INTERNAL": "1", "MEMTRACE_DIGEST_KEY": "k"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    by_process: dict[str, list[dict[str, Any]]] = {}
    for line in done.stdout.splitlines():
        by_process.setdefault(json.loads(line)["pid"], []).append(json.loads(line))
    return by_process


@pytest.mark.parametrize("method", ["os.fork", "fork", "spawn"])
def test_each_worker_exports_an_unbroken_sequence_of_its_own(method: str) -> None:
    by_process = run(method)
    assert len(by_process) == 3  # the parent and two workers
    sequences = set()
    for spans in by_process.values():
        processes, numbers = zip(*(span["seq"].split(":") for span in spans))
        assert len(set(processes)) == 1
        sequences.update(processes)
        assert sorted(map(int, numbers)) == list(range(1, len(spans) + 1))
        assert len([span for span in spans if span["step"] == "create"]) == EACH
        assert {span["key"] for span in spans} == {next(iter(by_process.values()))[0]["key"]}
    assert len(sequences) == 3


@pytest.mark.parametrize("method", ["os.fork", "fork"])
def test_what_the_parent_knew_is_linked_from_a_forked_worker(method: str) -> None:
    by_process = run(method)
    [parent] = [spans for spans in by_process.values() if spans[0]["parent"]]
    before = next(span for span in parent if span["step"] == "ingest")
    for spans in by_process.values():
        if spans is not parent:
            assert all(
                before["span_id"] in span["links"] for span in spans if span["step"] == "create"
            )
