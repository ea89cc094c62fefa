"""What a memory operation costs the host program. Ratios are taken within one run.

    python tests/benchmarks/bench_overhead.py            # everything, about two minutes
    python tests/benchmarks/bench_overhead.py operation --repeats 15
    python tests/benchmarks/bench_overhead.py memory --operations 1000000

operation   one operation with 10 inputs and 10 outputs of 100 characters each, against a bare
            OpenTelemetry span given the same finished attributes and links
no-sdk      the same without an SDK
foreground  latency of the application thread with the stock OTLP/HTTP exporter and a sink in
            another process, one operation per 0.3 ms of work; with what other processes wrote
            as 10 inputs, 3 outputs and so no links, and as under "operation"
memory      resident memory over many operations
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link

import memtrace_otel
from memtrace_otel import runtime
from memtrace_otel.config import Config
from memtrace_otel.runtime import Runtime

VALUES = 10
CHARS = 100


class Collecting:
    """A span processor that keeps the last spans."""

    def __init__(self) -> None:
        self.last: ReadableSpan | None = None

    def on_start(self, span: object, parent_context: object = None) -> None:
        pass

    def on_end(self, span: ReadableSpan) -> None:
        self.last = span

    def _on_ending(self, span: object) -> None:
        pass

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


def texts(number: int) -> list[str]:
    """Fresh texts of 100 characters."""
    about = "the user moved to Lisbon in May"
    return [f"{number:08d}-{value:02d} {about}".ljust(CHARS, ".") for value in range(VALUES)]


class Work(NamedTuple):
    """Arguments of one operation: records written by the three before it, and new ones."""

    inputs: list[tuple[str, str]]
    outputs: list[tuple[str, str]]


def workload(count: int) -> Iterator[Work]:
    """``count`` operations, each reading what earlier ones wrote."""
    written = deque([records(0), records(0), records(0)], maxlen=3)
    for number in range(1, count + 1):
        first, second, third = written
        outputs = records(number)
        yield Work([*first[:3], *second[3:6], *third[6:]], outputs)
        written.append(outputs)


def reading(count: int) -> Iterator[Work]:
    """``count`` operations, each reading what other processes wrote."""
    for number in range(1, count + 1):
        yield Work(records(-number), records(number)[:3])


def records(number: int) -> list[tuple[str, str]]:
    """Ten texts, each with the library's id of its record."""
    ids = [f"{number % 2**32:08x}-0000-4000-8000-{value:012x}" for value in range(VALUES)]
    return list(zip(texts(number), ids))


def record(work: Work) -> None:
    """The operation under test, as a user would write it."""
    with memtrace_otel.operation("consolidate", system="bench", graph_id="user:1") as op:
        op.inputs(*[memtrace_otel.memory(text, id, system="bench") for text, id in work.inputs])
        op.outputs(*[memtrace_otel.memory(text, id, system="bench") for text, id in work.outputs])


def install(provider: TracerProvider | None) -> None:
    """A fresh runtime that sends to ``provider``."""
    runtime.install(Runtime(Config(digest_key="benchmark"), tracer_provider=provider))


def measure(run: Callable[[Work], None], given: list[Work]) -> float:
    """Processor time per call in microseconds."""
    gc.collect()
    gc.freeze()  # the prepared arguments are not the host's
    started = time.process_time()
    for work in given:
        run(work)
    taken = time.process_time() - started
    gc.unfreeze()
    return taken / len(given) * 1e6


def bench_operation(repeats: int, count: int) -> None:
    keeping = Collecting()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(keeping)
    install(provider)
    tracer = provider.get_tracer("bare", "1")
    for work in workload(100):
        record(work)
    span = keeping.last
    if span is None or not span.attributes:
        raise SystemExit("the operation left no span")
    name, attributes = span.name, dict(span.attributes)
    targets = [(link.context, dict(link.attributes or {})) for link in span.links]
    lineage = json.loads(str(attributes["memtrace.lineage"]))

    def bare(_: Work) -> None:
        links = [Link(*target) for target in targets]
        with tracer.start_as_current_span(name, attributes=attributes, links=links):
            pass

    def packing(_: Work) -> None:
        links = [Link(*target) for target in targets]
        packed = {**attributes, "memtrace.lineage": json.dumps(lineage, separators=(",", ":"))}
        with tracer.start_as_current_span(name, attributes=packed, links=links):
            pass

    rows: list[tuple[float, ...]] = []
    for repeat in range(repeats):
        given = list(workload(count))
        order = [record, bare, packing]
        order = order[repeat % 3 :] + order[: repeat % 3]
        taken = {run: measure(run, given) for run in order}
        rows.append((taken[record], taken[bare], taken[packing]))
    encoding = statistics.median(encode_cost(span, 200) for _ in range(repeats))
    ours, ready, packed_here = (statistics.median(column) for column in zip(*rows))
    print(f"operation, 10 inputs, 10 outputs, {len(targets)} links             {ours:8.1f} us")
    print(f"bare span, same attributes and links, JSON packed  {packed_here:8.1f} us")
    print(f"bare span, same attributes and links, JSON given   {ready:8.1f} us")
    print(f"encoding for OTLP, the same for all three          {encoding:8.1f} us")
    for label, column, extra in (
        ("bare span created, JSON given", 1, 0.0),
        ("bare span created, JSON packed", 2, 0.0),
        ("bare span created and encoded", 2, encoding),
    ):
        ratios = sorted((row[0] + extra) / (row[column] + extra) for row in rows)
        print(
            f"ratio to {label:31} median {statistics.median(ratios):5.2f}"
            f"  best {ratios[0]:5.2f}  worst {ratios[-1]:5.2f}"
        )


def encode_cost(span: ReadableSpan, count: int) -> float:
    """Processor time in microseconds to encode one span, in batches of ``count``."""
    started = time.process_time()
    encode_spans([span] * count).SerializeToString()
    return (time.process_time() - started) / count * 1e6


def bench_without_sdk(repeats: int, count: int) -> None:
    install(None)
    work = next(workload(1))
    inputs = [memtrace_otel.memory(text, id, system="bench") for text, id in work.inputs]
    outputs = [memtrace_otel.memory(text, id, system="bench") for text, id in work.outputs]

    def given(_: Work) -> None:
        with memtrace_otel.operation("consolidate", system="bench", graph_id="user:1") as op:
            op.inputs(*inputs)
            op.outputs(*outputs)

    many = [work] * count
    alone = min(measure(given, many) for _ in range(repeats))
    whole = min(measure(record, many) for _ in range(repeats))
    print(f"no SDK, operation with 20 variables                {alone:8.2f} us")
    print(f"no SDK, making the 20 variables as well            {whole:8.2f} us")


class Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()


def serve_sink() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    print(server.server_port, flush=True)
    server.serve_forever()


def percentiles(samples: list[float]) -> str:
    samples.sort()
    at = [samples[int(len(samples) * part)] for part in (0.5, 0.9, 0.99, 0.999)]
    return "".join(f"{value:8.0f}" for value in at)


def bench_foreground(repeats: int, count: int) -> None:
    sink = subprocess.Popen([sys.executable, __file__, "sink"], stdout=subprocess.PIPE, text=True)
    try:
        port = sink.stdout.readline().strip() if sink.stdout else ""
        print(f"{'application thread, us':42}{'p50':>8}{'p90':>8}{'p99':>8}{'p99.9':>8}")
        for _ in range(repeats):
            url = f"http://127.0.0.1:{port}/v1/traces"
            for label, endpoint, work, make in (
                ("no spans", None, reading, None),
                ("bare span, one packed attribute", url, reading, bare_packed),
                ("10 inputs, 3 outputs, no links", url, reading, None),
                ("10 inputs, 10 outputs, 3 links", url, workload, None),
            ):
                samples = foreground(endpoint, list(work(count)), make)
                print(f"{label:42}{percentiles(samples)}", flush=True)
    finally:
        sink.kill()
        sink.wait()


def bare_packed(provider: TracerProvider) -> Callable[[Work], None]:
    """A span with one packed attribute and 600 characters of text: baselines 7b, "packed"."""
    tracer = provider.get_tracer("bare", "1")

    def record_bare(work: Work) -> None:
        packed = json.dumps({"inputs": [id for _, id in work.inputs]}, separators=(",", ":"))
        attributes = {"memtrace.lineage": packed, "text": "x" * 600}
        with tracer.start_as_current_span("search_memory", attributes=attributes):
            pass

    return record_bare


def foreground(
    endpoint: str | None,
    work: list[Work],
    make: Callable[[TracerProvider], Callable[[Work], None]] | None = None,
) -> list[float]:
    provider = TracerProvider(shutdown_on_exit=False)
    if endpoint:
        exporter = OTLPSpanExporter(endpoint=endpoint)
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
    install(provider)
    run = make(provider) if make else record
    gc.collect()
    gc.freeze()  # the prepared arguments are not the host's
    samples = []
    for arguments in work:
        started = time.perf_counter()
        total = 0
        for number in range(14_000):
            total += number
        if endpoint:
            run(arguments)
        samples.append((time.perf_counter() - started) * 1e6)
    gc.unfreeze()
    provider.shutdown()
    return samples


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def bench_memory(operations: int) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Collecting())
    install(provider)
    print("operations    resident MB")
    step = max(1, operations // 10)
    for number, arguments in enumerate(workload(operations)):
        record(arguments)
        if number % step == 0:
            print(f"{number:10d}    {resident_mb():10.1f}", flush=True)
    print(f"{operations:10d}    {resident_mb():10.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        choices=["all", "operation", "no-sdk", "foreground", "memory", "sink"],
    )
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--count", type=int, default=2_000, help="operations per repeat")
    parser.add_argument("--operations", type=int, default=100_000, help="for memory")
    options = parser.parse_args()
    if options.what == "sink":
        serve_sink()
    if options.what in ("all", "operation"):
        bench_operation(options.repeats, options.count)
    if options.what in ("all", "no-sdk"):
        bench_without_sdk(options.repeats, 20_000)
    if options.what in ("all", "foreground"):
        bench_foreground(3, options.count)
    if options.what in ("all", "memory"):
        bench_memory(options.operations)


if __name__ == "__main__":
    main()
