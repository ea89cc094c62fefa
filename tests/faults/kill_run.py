"""SIGKILL of a running `up` under load, again and again; then what was lost, doubled or changed.

``python -m tests.faults.kill_run 200`` prints a table and exits 1 when anything was.

Three senders repeat each request until it is acknowledged. The graphs and verdicts at the end
are compared with those of an undisturbed `up` that gets each request once, and what a recording
destination holds with what was acknowledged. Between delivery and the note of it a kill has the
same bytes delivered again, which is counted and no fault; what may not be is a second identity.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read
from tests import receivers
from tests.faults import kill_load
from tests.faults.senders import RETRYABLE, Ledger, Senders, over_http
from tests.faults.sink import Arrived
from tests.memtrace_collector.running import children, is_running, start_up
from tests.ports import free_port

KINDS = ("receiver", "projector", "worker", "both")
ACKNOWLEDGED_BETWEEN = (4, 30)
PAUSE_SECONDS = 0.03
BUSY_SECONDS = 3.0
SETTLE_SECONDS = 240.0
ORPHAN_SECONDS = 5.0
PROMPT = {"MEMTRACE_ATTRIBUTION_INTERVAL_SECONDS": "0.1"}
_VALUE = re.compile(r"^(\w+)(\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Ports:
    """The same before and after a kill, so that senders find it again."""

    grpc: int
    http: int
    api: int

    def options(self) -> tuple[str, ...]:
        pairs = (("--grpc-port", self.grpc), ("--http-port", self.http), ("--api-port", self.api))
        return tuple(str(part) for pair in pairs for part in pair)


@dataclass
class Result:
    """What happened, and (from ``lost_in_log`` on) what should not have."""

    kills: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    acknowledged: int = 0
    refused: int = 0
    spans: int = 0
    operations: int = 0
    graphs: int = 0
    verdicts: int = 0
    delivered_again: int = 0
    lost_in_log: int = 0
    lost_in_graphs: int = 0
    twice_in_graphs: int = 0
    lost_at_destination: int = 0
    other_hash: int = 0
    other_verdict: int = 0
    verdict_not_delivered: int = 0
    verdict_delivered_twice: int = 0
    verdict_altered: int = 0
    refused_for_good: int = 0
    orphans: int = 0

    def faults(self) -> dict[str, int]:
        names = list(vars(self))
        faults = names[names.index("lost_in_log") :]
        return {name: vars(self)[name] for name in faults if vars(self)[name]}

    def table(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kills.items()))
        rows = {"kills": f"{self.kills.total()} ({kinds})", "seconds": f"{self.seconds:.0f}"}
        rows |= {k: str(v) for k, v in vars(self).items() if k not in rows}
        return "\n".join(f"{name.replace('_', ' '):26}{value}" for name, value in rows.items())


class Running:
    """An `up` that is killed and started again on the same folder and ports."""

    def __init__(self, store: Path, *arguments: str) -> None:
        self.ports = Ports(*(free_port() for _ in range(3)))
        self._start = lambda: start_up(store, *self.ports.options(), *arguments, **PROMPT)
        self.up = self._start()
        self._api = httpx.Client(
            base_url=f"http://127.0.0.1:{self.ports.api}", timeout=60, trust_env=False
        )

    def close(self) -> None:
        self._api.close()
        if self.up.process.poll() is None:
            self.up.stop(signal.SIGKILL)

    def projector(self) -> int | None:
        """The child process, if there is one now."""
        found = children(self.up.process.pid)
        return found[0] if found else None

    def kill_projector(self) -> None:
        if pid := self.projector():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_owner(self) -> bool:
        """Kill and start it again; whether its child was gone soon after it."""
        child = self.projector()
        self.up.stop(signal.SIGKILL)
        gone = child is None or _gone(child)
        self.up = self._start()
        return gone

    def ask(self, path: str, **parameters: str) -> Any:
        response = self._api.get(f"/api/v1{path}", params=parameters)
        response.raise_for_status()
        return response.json()

    def metrics(self) -> dict[tuple[str, str], float]:
        """(name, attributes as shown) -> value."""
        text = self._api.get("/metrics").text
        return {(name, labels): float(value) for name, labels, value in _VALUE.findall(text)}

    def is_writing_back(self) -> bool:
        """A row of the outbox waits to be delivered."""
        return _sum(self.metrics(), "memtrace_outbox_depth", 'state="pending"') > 0

    def is_done(self, verdicts: int) -> bool:
        """Everything projected, forwarded, judged and delivered."""
        now = self.metrics()
        lags = ("memtrace_projection_lag_bytes", "memtrace_forward_lag_bytes")
        behind = sum(_sum(now, name) for name in lags)
        pending = _sum(now, "memtrace_outbox_depth", 'state="pending"')
        return not behind and not pending and len(self.ask("/verdicts")) >= verdicts


def run(kills: int, folder: Path, seed: int = 1) -> Result:
    """Kill so often, then compare with an undisturbed run."""
    result, ledger, began = Result(), Ledger(), time.monotonic()
    with (
        receivers.running(folder / "sink") as sink,
        contextlib.closing(Running(folder / "killed", "--forward", sink.http)) as running,
    ):
        senders = Senders(
            ledger,
            kill_load.body,
            http_port=running.ports.http,
            grpc_port=running.ports.grpc,
            pause_seconds=PAUSE_SECONDS,
        )
        senders.start()
        _kill(running, ledger, kills, random.Random(seed), result)
        senders.stop(SETTLE_SECONDS)
        numbers = sorted(ledger.acknowledged())
        flagged = sum(map(kill_load.is_flagged, numbers))
        _until(lambda: running.is_done(flagged), SETTLE_SECONDS)
        with contextlib.closing(Running(folder / "calm")) as calm:
            _send_once(calm, numbers)
            _until(lambda: calm.is_done(flagged), SETTLE_SECONDS)
            _compare_graphs(running, calm, numbers, result)
            _compare_verdicts(running, calm, flagged, result)
            assert calm.up.stop() == 0
        assert running.up.stop() == 0
        arrived = Arrived(sink.records())
    result.acknowledged, result.refused = len(numbers), ledger.refused.total()
    result.refused_for_good = sum(n for why, n in ledger.refused.items() if why not in RETRYABLE)
    _compare_spans(folder / "killed" / "log", arrived, numbers, flagged, result)
    result.seconds = time.monotonic() - began
    return result


def _kill(
    running: Running, ledger: Ledger, kills: int, chance: random.Random, result: Result
) -> None:
    for number in range(kills):
        enough = len(ledger) + chance.randint(*ACKNOWLEDGED_BETWEEN)
        _until(lambda enough=enough: len(ledger) >= enough, SETTLE_SECONDS)
        kind = KINDS[number % len(KINDS)] if kills < 20 else chance.choice(KINDS)
        if kind == "worker":
            with contextlib.suppress(TimeoutError):
                _until(running.is_writing_back, BUSY_SECONDS)
        if kind in ("projector", "both"):
            running.kill_projector()
        if kind != "projector" and not running.kill_owner():
            result.orphans += 1
        result.kills[kind] += 1


def _send_once(calm: Running, numbers: list[int]) -> None:
    with over_http(calm.ports.http) as post:
        for number in numbers:
            reason = post(kill_load.body(number))
            assert not reason, f"an undisturbed request was not acknowledged: {reason}"


def _compare_graphs(running: Running, calm: Running, numbers: list[int], result: Result) -> None:
    expected = kill_load.operations_by_graph(numbers)
    found = {row["graph_id"]: row["operations"] for row in running.ask("/graphs")}
    result.operations, result.graphs = sum(found.values()), len(found)
    for graph, count in expected.items():
        result.lost_in_graphs += max(0, count - found.get(graph, 0))
        result.twice_in_graphs += max(0, found.get(graph, 0) - count)
        mine, theirs = (side.ask("/hash", graph=graph)["hash"] for side in (running, calm))
        result.other_hash += mine != theirs


def _compare_verdicts(running: Running, calm: Running, flagged: int, result: Result) -> None:
    mine, theirs = (_verdicts(side) for side in (running, calm))
    result.verdicts = mine.total()
    result.other_verdict = (mine - theirs).total() + (theirs - mine).total()
    result.other_verdict += abs(flagged - mine.total())


def _verdicts(side: Running) -> Counter[tuple[str, str, str, int]]:
    return Counter(
        (each["graph_id"], each["stage"], each["error_type"], each["revision"])
        for each in side.ask("/verdicts", history="true")
    )


def _compare_spans(
    log: Path, arrived: Arrived, numbers: list[int], flagged: int, result: Result
) -> None:
    kept = {entry.record.body for entry in read(log, START)}
    for number in numbers:
        body = kill_load.body(number)
        result.lost_in_log += body not in kept
        ids = list(kill_load.span_ids(body))
        result.spans += len(ids)
        result.lost_at_destination += sum(key not in arrived.spans for key in ids)
    result.delivered_again = arrived.delivered_again
    result.verdict_altered = len(arrived.altered())
    result.verdict_not_delivered = max(0, flagged - len(arrived.attributed))
    result.verdict_delivered_twice = arrived.attributed.total() - len(arrived.attributed)


def _gone(pid: int) -> bool:
    with contextlib.suppress(TimeoutError):
        _until(lambda: not is_running(pid), ORPHAN_SECONDS)
        return True
    return False


def _until(holds: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:.0f} s")
        time.sleep(0.02)


def _sum(metrics: dict[tuple[str, str], float], name: str, label: str = "") -> float:
    return sum(v for (known, labels), v in metrics.items() if known == name and label in labels)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="memtrace-kills-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Run so many kills (20 when not said) with a seed (1); 1 when something is wrong."""
    kills, seed = (
        int(sys.argv[n]) if len(sys.argv) > n else default for n, default in ((1, 20), (2, 1))
    )
    with _scratch() as folder:
        result = run(kills, folder, seed)
    print(result.table())
    print("FAULTS" if result.faults() else "no fault", result.faults() or "")
    return 1 if result.faults() else 0


if __name__ == "__main__":
    sys.exit(main())
