"""Mixed RAG traces through a real `memtrace-otel up` until they are visible in the graph.

    python -m tests.benchmarks.bench_ingest                              # 60 s at 20,000 spans/s
    python -m tests.benchmarks.bench_ingest --seconds 600 --rate 20000
    python -m tests.benchmarks.bench_ingest --values                     # content captured
    python -m tests.benchmarks.bench_ingest --downstream                 # and sent on to a sink
    python -m tests.benchmarks.bench_ingest --dead-downstream            # to nobody: memory, disk
    python -m tests.benchmarks.bench_ingest --peers --seconds 20         # Phoenix and MLflow too

12 spans a trace, 4 of them memory operations, about 2.2 KB a span (``rag_traces.py``), over
OTLP/HTTP in requests of 504 spans. ``acked``: answered with 200, which means on disk. ``visible``:
operations that the API counts in its graphs. CPU is that of all processes of the server. The
baseline ``floor``, measured in the same run, is what nobody who keeps and reads spans can avoid:
appending the same bytes to a file, ``fdatasync``, and parsing them with protobuf.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.benchmarks import peers, rag_traces
from tests.benchmarks.process_tree import usage
from tests.benchmarks.rag_traces import Request
from tests.benchmarks.sending import Load, Sent
from tests.benchmarks.sink import closed_port, running_sink
from tests.memtrace_collector.running import Up, start_up

TEMPLATES = 24
SAMPLE_SECONDS = 1.0
CATCH_UP_SECONDS = 120.0
CURVE_POINTS = 12


class Sample(NamedTuple):
    """At ``seconds`` after the start: what was acknowledged and visible, and the memory in MB, of
    all processes and of the owner alone."""

    seconds: float
    acked: int
    visible: int
    megabytes: float
    owner: float


class Run(NamedTuple):
    """``visible_seconds``: until everything that was acknowledged was visible. ``cpu``: seconds, of
    the owner and then of its other processes. ``forwarded``: spans by then."""

    sent: Sent
    seconds: float
    visible_seconds: float
    visible: int
    cpu: list[float]
    samples: list[Sample]
    disk_bytes: int
    forwarded: int


def measure(options: argparse.Namespace, folder: Path) -> Run:
    """One run against a fresh store."""
    load = rag_traces.requests(TEMPLATES, graphs=options.graphs, values=options.values)
    with contextlib.ExitStack() as opened:
        arguments, forwarded = _destination(options, opened)
        return _measure(options, folder, load, arguments, forwarded)


def _destination(
    options: argparse.Namespace, opened: contextlib.ExitStack
) -> tuple[list[str], Callable[[], int]]:
    """Arguments that name a destination, and the spans that it got."""
    if options.dead_downstream:
        return ["--forward", f"http://127.0.0.1:{closed_port()}"], lambda: 0
    if options.downstream:
        sink = opened.enter_context(running_sink())
        return ["--forward", sink.url], sink.spans
    return [], lambda: 0


def _measure(
    options: argparse.Namespace,
    folder: Path,
    load: list[Request],
    arguments: list[str],
    forwarded: Callable[[], int],
) -> Run:
    with _up(folder / "store", *arguments) as up:
        before = usage(up.process.pid).seconds
        start = time.monotonic()
        load_run = Load(
            up.addresses["otlp_http"],
            load,
            options.connections,
            options.rate,
            lambda number, elapsed: elapsed < options.seconds,
        )
        samples: list[Sample] = []
        done = threading.Event()
        sampler = threading.Thread(target=_sample, args=(up, load_run.sent, start, samples, done))
        sampler.start()
        sent = load_run.run()
        seconds = time.monotonic() - start
        visible = _wait_visible(up, sent.operations)
        visible_seconds = time.monotonic() - start
        sent_on = forwarded()
        done.set()
        sampler.join()
        after = usage(up.process.pid).seconds
        cpu = [after[member] - before.get(member, 0.0) for member in after]
    disk = sum(path.stat().st_size for path in (folder / "store").rglob("*") if path.is_file())
    return Run(sent, seconds, visible_seconds, visible, cpu, samples, disk, sent_on)


@contextlib.contextmanager
def _up(store: Path, *arguments: str) -> Iterator[Up]:
    up = start_up(store, *arguments)
    try:
        yield up
    finally:
        up.stop()


def _visible(up: Up) -> int:
    return sum(graph["operations"] for graph in up.ask("/graphs"))


def _wait_visible(up: Up, wanted: int) -> int:
    deadline = time.monotonic() + CATCH_UP_SECONDS
    while (visible := _visible(up)) < wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return visible


def _sample(up: Up, sent: Sent, start: float, samples: list[Sample], done: threading.Event) -> None:
    while not done.wait(SAMPLE_SECONDS):
        used = usage(up.process.pid)
        owner = used.resident.get(up.process.pid, 0.0)
        at = time.monotonic() - start
        samples.append(Sample(at, sent.operations, _visible(up), used.megabytes, owner))


def floor(load: list[Request], folder: Path, rounds: int = 3) -> float:
    """CPU milliseconds per 1,000 spans of appending, syncing and parsing, the best of some."""
    best = float("inf")
    with (folder / "floor").open("wb", buffering=0) as file:
        for number in range(rounds):
            bodies = [request.fresh(number + 1, time.time_ns()) for request in load]
            start = time.process_time()
            for body in bodies:
                file.write(body)
                os.fdatasync(file.fileno())
                ExportTraceServiceRequest.FromString(body)
            spans = sum(request.spans for request in load)
            best = min(best, (time.process_time() - start) / spans * 1e6)
    return best


def report(run: Run, options: argparse.Namespace, floor_cpu: float) -> None:
    sent, operations = run.sent, max(1, run.sent.operations)
    spans_per_operation = sent.spans / operations
    shares = [seconds / max(1, sent.spans) * 1e6 for seconds in run.cpu]
    cpu = sum(shares)
    lags = [(s.acked - s.visible) / operations * run.seconds for s in run.samples if s.acked]
    rows = [
        ("spans acknowledged", f"{sent.spans:,} in {run.seconds:.1f} s"),
        ("  spans/s", f"{sent.spans / run.seconds:,.0f} (offered {options.rate:,.0f})"),
        ("  MB/s", f"{sent.bytes / run.seconds / 1e6:.0f} ({sent.bytes / sent.spans:,.0f} B/span)"),
        ("  answer p50 / p99, ms", f"{sent.latency(0.5):.0f} / {sent.latency(0.99):.0f}"),
        ("  retried / failed requests", f"{sent.retried} / {sent.failed}"),
        ("operations visible", f"{run.visible:,} of {sent.operations:,}"),
        (
            "  spans/s until visible",
            f"{run.visible * spans_per_operation / run.visible_seconds:,.0f}",
        ),
        ("  lag median / worst, s", f"{_middle(lags):.1f} / {max(lags, default=0):.1f}"),
        ("CPU ms per 1,000 spans", f"{cpu:.1f} = {cpu / floor_cpu:.1f} x floor ({floor_cpu:.1f})"),
        ("  by process", " + ".join(f"{share:.1f}" for share in shares)),
        ("memory MB, peak", f"{max((s.megabytes for s in run.samples), default=0):.0f}"),
        ("  of the owner", f"{max((s.owner for s in run.samples), default=0):.0f}"),
        ("spans sent on", f"{run.forwarded:,} ({run.forwarded / run.visible_seconds:,.0f}/s)"),
        ("disk bytes per span", f"{run.disk_bytes / max(1, sent.spans):,.0f}"),
    ]
    for name, value in rows:
        print(f"{name:<30} {value}")
    print(f"\n{'seconds':>8} {'acked ops':>12} {'visible ops':>12} {'MB':>7} {'owner':>8}")
    for sample in run.samples[:: max(1, len(run.samples) // CURVE_POINTS)]:
        print(
            f"{sample.seconds:8.0f} {sample.acked:12,} {sample.visible:12,}"
            f" {sample.megabytes:7.0f} {sample.owner:8.0f}"
        )


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--rate", type=float, default=20_000.0, help="spans/s; 0: as fast as it can"
    )
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--graphs", type=int, default=rag_traces.GRAPHS)
    parser.add_argument("--values", action="store_true", help="content captured")
    parser.add_argument("--downstream", action="store_true", help="forward to a sink")
    parser.add_argument("--dead-downstream", action="store_true")
    parser.add_argument("--peers", action="store_true", help="Phoenix and MLflow from PyPI")
    parser.add_argument("--folder", type=Path, help="where stores are made and removed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-ingest-", dir=options.folder))
    try:
        floor_cpu = floor(rag_traces.requests(4, values=options.values), folder)
        run = measure(options, folder)
        report(run, options, floor_cpu)
        if options.peers:
            own = peers.Figures(
                "memtrace-otel",
                run.visible / max(1, run.sent.operations) * run.sent.spans / run.visible_seconds,
                sum(run.cpu) / max(1, run.sent.spans) * 1e6,
                max((sample.megabytes for sample in run.samples), default=0.0),
            )
            peers.compare(own, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
