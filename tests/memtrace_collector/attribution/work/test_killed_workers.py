"""SIGKILL of a worker at any point: afterwards every case has one verdict and one outbox set."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memtrace_collector.graph.facts import Flag, Operation, SpanFacts
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.attribution.killed_workers import POINTS
from tests.memtrace_collector.attribution.scripts import Script

ROOT = Path(__file__).parents[4]
CASES = 4
RANDOM_KILLS = 5


def _facts(folder: Path) -> None:
    """Flagged answers of several owners; some find a deleted record, some none."""
    at = LogPosition(1, 0)
    with closing(SqliteFactStore(folder / "facts.db")) as store:
        for number in range(CASES):
            script = Script(f"user:{number}")
            message, version = script.remember(f"My barber is Enzo number {number}.")
            if number % 2:
                script.day(2)
                script.delete(version)
            script.ask("Who is my barber?")
            script.reply("I do not know.", *([] if number % 2 else [version]))
            script.flag(f"Enzo number {number}", message)
            batch = [SpanFacts(operation=_of_owner(op, number)) for op in script.operations]
            flags = tuple(_flag_of_owner(flag, number) for flag in script.flags)
            rest = SpanFacts(values=tuple(script.values), flags=flags)
            store.apply([(at, each) for each in [*batch, rest]], at)


def _of_owner(operation: Operation, number: int) -> Operation:
    assert operation.sequence is not None
    sequence = operation.sequence._replace(process=f"{operation.sequence.process}-{number}")
    trace_id = f"{number + 1:08x}{operation.trace_id[8:]}"
    return replace(operation, trace_id=trace_id, sequence=sequence)


def _flag_of_owner(flag: Flag, number: int) -> Flag:
    trace_id = f"{number + 1:08x}{flag.trace_id[8:]}"
    return replace(flag, trace_id=trace_id, origin=f"{number}/{flag.origin}")


def _left_by(folder: Path, scenarios: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.memtrace_collector.attribution.killed_workers",
            str(folder),
            json.dumps(scenarios),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'collector'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_killed_and_crowded_workers_leave_what_an_undisturbed_one_leaves(tmp_path: Path) -> None:
    chance = random.Random(20261122)
    _facts(tmp_path)
    at_points = [[[point, number]] for point in POINTS for number in (1, CASES // 2)]
    in_a_row = [[[chance.choice(POINTS), chance.randint(1, 3)] for _ in range(6)] for _ in range(2)]
    from_outside = [[[chance.uniform(0.0, 0.15)] for _ in range(RANDOM_KILLS)]]
    together = [[["together", 3]], [["before judging", 2], ["together", 3]]]
    scenarios = [*at_points, *in_a_row, *from_outside, *together]
    calm, *disturbed = _left_by(tmp_path, [[], *scenarios])
    assert [row[1] for row in calm["verdicts"]] == [1] * CASES
    assert len(calm["outbox"]) == len({row[0] for row in calm["outbox"]}) >= 3 * CASES
    assert calm["states"] == [0, 0, CASES, 0], "every case is judged"
    killed = [each.pop("killed") for each in disturbed]
    passed_once = {"before announce", "after announce"}
    expected = [int(not (p in passed_once and n > 1)) for ((p, n),) in at_points]
    assert killed[: len(at_points)] == expected, "every point is really passed"
    calm.pop("killed")
    for kills, each in zip(scenarios, disturbed):
        assert each == calm, kills
