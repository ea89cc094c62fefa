"""Workers as processes of their own, killed where a scenario says; what they leave, as JSON.

Run with a folder that holds a ``facts.db`` and a JSON list of scenarios: ``[]`` undisturbed,
``[point, n]`` a SIGKILL by its own hand at the n-th passing of that point, ``[seconds]`` one from
outside after so long, ``["together", n]`` so many workers at the same time, and any number of
these in a row. Every scenario ends with a worker that is left alone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.attribution.work.worker import Worker, WorkerSettings
from memtrace_collector.graph.case import Case
from memtrace_collector.store import sqlite_queue
from memtrace_collector.store.queue import STATES
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore

POINTS = (
    "before announce",
    "inside announce",
    "after announce",
    "after take",
    "before judging",
    "after judging",
    "before release",
    "between verdict and outbox",
    "inside outbox",
    "after release",
)
LEASE_SECONDS = 60.0
_NS = 1_000_000_000

Kill = Callable[[str], None]


class KilledStore(SqliteCaseStore):
    """Calls ``at`` around what it does."""

    def __init__(self, path: Path, at: Kill) -> None:
        super().__init__(path)
        self.at = at

    def announce(self, cases: Any, graph_ids: Any, until: Any, now_ns: int) -> None:
        def passing() -> Iterator[Any]:
            for case in cases:
                yield case
                self.at("inside announce")

        self.at("before announce")
        super().announce(passing(), graph_ids, until, now_ns)
        self.at("after announce")

    def take(self, *arguments: Any) -> Any:
        leases = super().take(*arguments)
        if leases:
            self.at("after take")
        return leases

    def release(self, *arguments: Any) -> bool:
        self.at("before release")
        kept = super().release(*arguments)
        self.at("after release")
        return kept


def worker(folder: Path, round_number: int, at: Kill) -> None:
    """Work until nothing waits. Each round's clock is past the leases of the one before."""

    def judge(case: Case) -> Verdict:
        at("before judging")
        verdict = attribute(case)
        at("after judging")
        return verdict

    def put_outbox(connection: Any, tenant: str, outbox: Any) -> None:
        def passing() -> Iterator[Any]:
            for entry in outbox:
                at("inside outbox")
                yield entry

        at("between verdict and outbox")
        genuine(connection, tenant, passing())

    genuine, sqlite_queue.put_outbox = sqlite_queue.put_outbox, put_outbox
    offset_ns = int(round_number * 2 * LEASE_SECONDS * _NS)
    with (
        closing(SqliteFactStore(folder / "facts.db")) as facts,
        closing(KilledStore(folder / "cases.db", at)) as cases,
    ):
        working = Worker(
            facts,
            cases,
            judge=judge,
            settings=WorkerSettings(lease_seconds=LEASE_SECONDS),
            clock_ns=lambda: time.time_ns() + offset_ns,
        )
        working.look()


def started(folder: Path, round_number: int, at: Kill) -> int:
    """The process id of a worker."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        worker(folder, round_number, at)
        code = 0
    finally:
        os._exit(code)


def dies_at(point: str, number: int) -> Kill:
    passed = 0

    def at(here: str) -> None:
        nonlocal passed
        passed += here == point
        if here == point and passed == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def run(folder: Path, kills: list[Any]) -> dict[str, Any]:
    killed = 0
    for number, kill in enumerate(kills):
        if kill[0] == "together":
            children = [started(folder, number, lambda _: None) for _ in range(kill[1])]
            assert [os.waitpid(child, 0)[1] for child in children] == [0] * kill[1]
            continue
        if len(kill) == 2:
            child = started(folder, number, dies_at(*kill))
        else:
            child = started(folder, number, lambda _: None)
            time.sleep(kill[0])
            os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    last = started(folder, len(kills), lambda _: None)
    assert os.waitpid(last, 0)[1] == 0
    return {"killed": killed, **left(folder)}


def left(folder: Path) -> dict[str, Any]:
    with closing(SqliteCaseStore(folder / "cases.db")) as cases:
        verdicts = cases.verdicts(history=True)
        outbox = cases.outbox_due(2**62, 10_000)
        return {
            "verdicts": sorted(
                [v["id"], v["revision"], v["case_trace"], v["stage"], v["error_type"]]
                for v in verdicts
            ),
            "outbox": sorted([entry.id, entry.signal, entry.revision] for entry in outbox),
            "states": [cases.queue_counts()[state] for state in STATES],
        }


def main() -> None:
    folder, scenarios = Path(sys.argv[1]), json.loads(sys.argv[2])
    found = []
    for number, kills in enumerate(scenarios):
        own = folder / str(number)
        own.mkdir()
        shutil.copy(folder / "facts.db", own / "facts.db")
        found.append(run(own, kills))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
