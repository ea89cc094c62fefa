"""`up` under a steady load for a long time: memory, files, write-ahead logs, lag, acknowledgements.

    python -m tests.benchmarks.bench_soak --minutes 60
    python -m tests.benchmarks.bench_soak --minutes 5 --forward dead --rate 4000

RAG traces (one memory span in three) come in over HTTP at a fixed rate, with retention on.
Prints a line a sample, then curves and a table whose baseline is the second tenth of the same
run; all samples are in a CSV file. Memory is PSS: of the owner, of the process that projects,
and of both together, which is what is bounded. Exit code 1 when that bound is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import http.client
import itertools
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

from tests import receivers
from tests.benchmarks import rag_traces
from tests.benchmarks.processes import Taken, taken
from tests.memtrace_collector.running import Up, children, start_up

SAMPLE_SECONDS = 5.0
SENDERS = 4
PREPARED = 64
MAX_PSS_MB = 300.0
LOG_BYTES = 1 << 30
PLOT_COLUMNS = 72
_BARS = " ▁▂▃▄▅▆▇█"
_VALUE = re.compile(r"^(\w+?)(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)
_MB = 1e6


class Sample(NamedTuple):
    """One row of the CSV. Sizes in MB, lag in MB of log, times in ms, ``cpu`` in cores."""

    seconds: float
    spans: int
    owner_pss: float
    projector_pss: float
    pss: float
    owner_cpu: float
    projector_cpu: float
    files: int
    wal: float
    log: float
    store: float
    lag: float
    forward_lag: float
    ack_p50: float
    ack_p99: float
    ack_max: float


CURVES = ("pss", "owner_pss", "projector_pss", "files", "wal", "log", "lag", "ack_p99")


class Load:
    """Senders that together keep a rate, and how long each acknowledgement took."""

    def __init__(self, port: int, spans_per_second: float, spans: int) -> None:
        self._port = port
        self._requests = rag_traces.requests(PREPARED, spans=spans, values=True)
        self._pause = SENDERS * self._requests[0].spans / spans_per_second
        self._lock = threading.Lock()
        self._latencies: list[float] = []
        self._stop = threading.Event()
        self.spans = 0
        self.failures = 0
        self._threads = [
            threading.Thread(target=self._send, args=(n,), daemon=True) for n in range(SENDERS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def latencies(self) -> list[float]:
        """Seconds, since the last call, in order."""
        with self._lock:
            taken_, self._latencies = self._latencies, []
        return sorted(taken_)

    def _send(self, sender: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        number, due = sender, time.monotonic()
        while not self._stop.is_set():
            request = self._requests[number % PREPARED]
            body = request.fresh(number, time.time_ns())
            began = time.monotonic()
            if self._post(connection, body):
                with self._lock:
                    self._latencies.append(time.monotonic() - began)
                    self.spans += request.spans
                number += SENDERS
            else:
                self.failures += 1
            due = max(due + self._pause, time.monotonic() - 1.0)  # catches up one second at most
            self._stop.wait(max(0.0, due - time.monotonic()))
        connection.close()

    @staticmethod
    def _post(connection: http.client.HTTPConnection, body: bytes) -> bool:
        try:
            headers = {"content-type": "application/x-protobuf"}
            connection.request("POST", "/v1/traces", body, headers)
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return False
        return response.status == 200


class Watch:
    """Takes samples of a running `up` and its folder."""

    def __init__(self, up: Up, store: Path, load: Load) -> None:
        self._up, self._store, self._load = up, store, load
        self._began = self._at = time.monotonic()
        self._before: dict[str, Taken] = {}
        self._api = httpx.Client(base_url=up.addresses["api"], timeout=30, trust_env=False)

    def close(self) -> None:
        self._api.close()

    def sample(self) -> Sample:
        now = time.monotonic()
        owner = taken(self._up.process.pid)
        projector = taken(next(iter(children(self._up.process.pid)), 0))
        latencies = self._load.latencies()
        metrics = self._metrics()
        took = now - self._at
        sample = Sample(
            seconds=round(now - self._began, 1),
            spans=self._load.spans,
            owner_pss=owner.pss / _MB,
            projector_pss=projector.pss / _MB,
            pss=(owner.pss + projector.pss) / _MB,
            owner_cpu=self._cpu("owner", owner, took),
            projector_cpu=self._cpu("projector", projector, took),
            files=owner.files + projector.files,
            wal=_size(self._store, "*-wal"),
            log=_size(self._store / "log", "*.log"),
            store=_size(self._store, "*.db"),
            lag=metrics.get("memtrace_projection_lag_bytes", 0.0) / _MB,
            forward_lag=metrics.get("memtrace_forward_lag_bytes", 0.0) / _MB,
            ack_p50=_percentile(latencies, 0.5),
            ack_p99=_percentile(latencies, 0.99),
            ack_max=_percentile(latencies, 1.0),
        )
        self._at = now
        return sample

    def lag(self) -> float:
        """MB of the log that are not projected yet."""
        return self._metrics().get("memtrace_projection_lag_bytes", 0.0) / _MB

    def _cpu(self, name: str, now: Taken, seconds: float) -> float:
        before = self._before.get(name, now)
        self._before[name] = now
        return (now.cpu - before.cpu) / seconds if seconds > 0.01 else 0.0

    def _metrics(self) -> dict[str, float]:
        found = _VALUE.findall(self._api.get("/metrics").text)
        return {name: float(value) for name, value in found}


def soak(arguments: argparse.Namespace, folder: Path) -> tuple[list[Sample], float, int]:
    """Samples, seconds to project the rest afterwards, and requests without an answer."""
    with contextlib.ExitStack() as open_:
        options = open_.enter_context(_forwarding(arguments.forward, folder))
        keep = {"MEMTRACE_RETENTION_LOG_BYTES": str(arguments.log_bytes)}
        up = start_up(folder / "store", *options, **keep)
        open_.callback(lambda: up.process.poll() is None and up.stop())
        load = Load(_port(up), arguments.rate, arguments.spans)
        watch = open_.enter_context(contextlib.closing(Watch(up, folder / "store", load)))
        load.start()
        samples = [watch.sample()]
        end = time.monotonic() + 60 * arguments.minutes
        while time.monotonic() < end:
            time.sleep(min(arguments.sample, max(0.1, end - time.monotonic())))
            samples.append(watch.sample())
            _say(samples[-1])
        load.stop()
        began = time.monotonic()
        while watch.lag() > 0 and time.monotonic() - began < 300:
            time.sleep(0.1)
        return samples, time.monotonic() - began, load.failures


@contextlib.contextmanager
def _forwarding(kind: str, folder: Path) -> Iterator[tuple[str, ...]]:
    """Options of `up`: no destination, one that nobody listens at, or a real receiver."""
    if kind == "none":
        yield ()
    elif kind == "dead":
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            yield ("--forward", f"http://127.0.0.1:{bound.getsockname()[1]}")
    else:
        with receivers.running(folder / "sink") as sink:
            yield ("--forward", sink.http)


def _port(up: Up) -> int:
    return int(up.addresses["otlp_http"].rpartition(":")[2])


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Milliseconds."""
    if not ordered:
        return 0.0
    return 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _size(folder: Path, pattern: str) -> float:
    total = 0
    for path in folder.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total / _MB


def _say(sample: Sample) -> None:
    print(
        f"{sample.seconds:7.0f} s  {sample.spans:10} spans  pss {sample.owner_pss:4.0f} + "
        f"{sample.projector_pss:4.0f} MB  cpu {sample.owner_cpu:.2f} + {sample.projector_cpu:.2f}"
        f"  files {sample.files:3}  wal {sample.wal:5.0f} MB  log {sample.log:6.0f} MB  lag "
        f"{sample.lag:6.1f} MB  ack {sample.ack_p50:5.1f} / {sample.ack_p99:6.1f} ms",
        flush=True,
    )


def curve(name: str, values: Sequence[float]) -> str:
    """One line of text; each column is the largest value of its stretch."""
    columns = min(PLOT_COLUMNS, len(values))
    bounds = [round(column * len(values) / columns) for column in range(columns + 1)]
    points = [max(values[start:end]) for start, end in itertools.pairwise(bounds)]
    top = max(points) or 1.0
    bars = "".join(_BARS[round(point / top * (len(_BARS) - 1))] for point in points)
    return f"{name:14}|{bars}| max {max(points):.1f}"


def report(samples: Sequence[Sample], rest_seconds: float, failures: int) -> str:
    """Curves, and the end of the run against its second tenth."""
    tenth = max(1, len(samples) // 10)
    early, late = samples[tenth : 2 * tenth] or samples[:1], samples[-tenth:]
    lines = [curve(name, [getattr(each, name) for each in samples]) for name in CURVES]
    lines += ["", f"{'mean of':14}{'2nd tenth':>12}{'last tenth':>12}{'ratio':>8}"]
    for name in (*CURVES, "owner_cpu", "projector_cpu", "ack_p50"):
        before, after = (
            sum(getattr(each, name) for each in part) / len(part) for part in (early, late)
        )
        ratio = f"{after / before:8.2f}" if before else f"{'-':>8}"
        lines.append(f"{name:14}{before:12.2f}{after:12.2f}{ratio}")
    seconds, spans = samples[-1].seconds, samples[-1].spans
    lines += [
        "",
        f"{spans} spans in {seconds:.0f} s ({spans / seconds:.0f} a second); the "
        f"rest was projected {rest_seconds:.1f} s after the last; {failures} requests failed",
        f"PSS of both: at most {max(each.pss for each in samples):.0f} MB of {MAX_PSS_MB:.0f} MB",
    ]
    return "\n".join(lines)


def main() -> int:
    """Run, print, write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=2_000.0, help="spans a second")
    parser.add_argument("--spans", type=int, default=96, help="spans a request")
    parser.add_argument("--sample", type=float, default=SAMPLE_SECONDS, help="seconds")
    parser.add_argument("--forward", choices=("none", "dead", "sink"), default="none")
    parser.add_argument("--log-bytes", type=int, default=LOG_BYTES, help="retention of the log")
    parser.add_argument("--folder", type=Path, help="on the disk to be used")
    parser.add_argument("--csv", type=Path, default=Path("soak.csv"))
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="memtrace-soak-", dir=arguments.folder))
    try:
        samples, rest_seconds, failures = soak(arguments, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    with arguments.csv.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Sample._fields)
        writer.writerows(samples)
    print(report(samples, rest_seconds, failures))
    return 0 if max(each.pss for each in samples) <= MAX_PSS_MB else 1


if __name__ == "__main__":
    sys.exit(main())
