"""Memory spans into PostgreSQL: by one processor, and by two with a log each.

    python -m tests.benchmarks.bench_postgres                       # under a minute
    python -m tests.benchmarks.bench_postgres --spans 400000

Every span is a memory operation (10 inputs, 3 outputs, packed). The logs are written first; then
each processor, a process of its own, projects its log through the real projector into one
database on a server of its own (fsync on, synchronous_commit on, shared_buffers as printed).
Wall: from the start of the first to the end of the last. CPU per span: of the processors, and of
the server's processes; per core: spans by both. The baseline is what a relational store does by
itself, without reading any span: ready-made rows, 14 an operation (operation, 10 used, 3
produced, each with a primary key), COPY into temporary tables, INSERT ... ON CONFLICT DO NOTHING.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.otlp.attributes import encode
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.postgres.facts import PostgresFactStore
from memtrace_otel import semconv
from tests.benchmarks.process_tree import usage
from tests.postgres import Cluster

SHARED_BUFFERS = "512MB"
SPANS_PER_REQUEST = 512
GRAPHS = 200
_BATCH = 2_000
_START_NS = 1_760_000_000_000_000_000
_TYPES = {
    "t_op": ["int8", "bytea", "int4", "int8", "int8", "bytea"],
    "t_produced": ["int4", "int8", "int8"],
    "t_used": ["int4", "int8", "int8"],
}
_TABLES = """
CREATE TABLE op(id bigint PRIMARY KEY, key bytea UNIQUE, graph int, st bigint, en bigint, io bytea);
CREATE TABLE produced(graph int, var bigint, op bigint, PRIMARY KEY(graph, var, op));
CREATE TABLE used(graph int, var bigint, op bigint, PRIMARY KEY(graph, var, op));
CREATE TEMP TABLE t_op(id bigint, key bytea, graph int, st bigint, en bigint, io bytea);
CREATE TEMP TABLE t_produced(graph int, var bigint, op bigint);
CREATE TEMP TABLE t_used(graph int, var bigint, op bigint)
"""
_Rows = dict[str, list[tuple[Any, ...]]]


class Measured(NamedTuple):
    """``client`` and ``server``: CPU seconds."""

    name: str
    spans: int
    seconds: float
    client: float
    server: float

    @property
    def rate(self) -> float:
        return self.spans / self.seconds


def requests(spans: int, seed: int) -> Iterator[bytes]:
    """Encoded requests of memory spans; one graph in ten takes most of them."""
    rng = random.Random(seed)
    recent: list[deque[str]] = [deque(maxlen=60) for _ in range(GRAPHS)]
    for first in range(0, spans, SPANS_PER_REQUEST):
        message = ExportTraceServiceRequest()
        group = message.resource_spans.add()
        group.resource.attributes.extend(encode({semconv.SERVICE_NAME: f"bench-{seed}"}))
        scope = group.scope_spans.add()
        for number in range(first, min(first + SPANS_PER_REQUEST, spans)):
            graph = min(int(rng.paretovariate(0.5)) - 1, GRAPHS - 1)
            start = _START_NS + number * 1_000_000
            span = scope.spans.add(
                trace_id=rng.randbytes(16),
                span_id=rng.randbytes(8),
                name=semconv.SPAN_NAMES[semconv.STEP_UPDATE],
                start_time_unix_nano=start,
                end_time_unix_nano=start + 900_000,
            )
            lineage = _lineage(rng, recent[graph], f"bench-{seed}", number)
            span.attributes.extend(
                encode(
                    {
                        semconv.MEMTRACE_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
                        semconv.MEMTRACE_GRAPH_ID: f"user:{graph:032x}",
                        semconv.MEMTRACE_STEP: semconv.STEP_UPDATE,
                        semconv.MEMTRACE_SYSTEM: "mem0",
                        semconv.MEMTRACE_CAPTURE: semconv.CAPTURE_OBSERVED,
                        semconv.MEMTRACE_LINEAGE: json.dumps(lineage, separators=(",", ":")),
                    }
                )
            )
        yield message.SerializeToString()


def _lineage(rng: random.Random, recent: deque[str], process: str, number: int) -> dict[str, Any]:
    made = [
        f"mem:mem0:{uuid.UUID(int=rng.getrandbits(128), version=4)}@{rng.getrandbits(48):012x}"
        for _ in range(3)
    ]
    read = rng.sample(list(recent), min(10, len(recent)))
    recent.extend(made)
    return {
        semconv.INPUTS: read,
        semconv.OUTPUTS: made,
        semconv.SEQ: f"{process}:{number + 1}",
        semconv.KEY: semconv.KEY_PLAIN,
    }


def write_log(folder: Path, spans: int, seed: int) -> None:
    with closing(SegmentLog(folder)) as log:
        for body in requests(spans, seed):
            log.append(LogRecord("default", time.time_ns(), "traces", "protobuf", body)).result()


def process(url: str, folder: Path, barrier: Barrier, done: Any) -> None:
    """A processor: its CPU seconds, and when it began and ended."""
    store = PostgresFactStore(url, log_id=folder.name)
    projector = Projector(folder, store, RecordReader())
    barrier.wait()
    began, cpu = time.monotonic(), time.process_time()
    projector.run_once()
    done.put((time.process_time() - cpu, began, time.monotonic()))
    barrier.wait()  # the server's share is read while our connection lives
    store.close()


def measure(cluster: Cluster, folder: Path, spans: int, processors: int) -> Measured:
    """``spans`` in all, in as many logs as there are processors."""
    folders = [folder / f"{processors}-{number}" for number in range(processors)]
    for number, each in enumerate(folders):
        write_log(each, spans // processors, seed=10 * processors + number)
    url = cluster.new_database()
    PostgresFactStore(url).close()
    context = get_context("spawn")
    barrier, done = context.Barrier(processors + 1), context.Queue()
    workers = [context.Process(target=process, args=(url, each, barrier, done)) for each in folders]
    for worker in workers:
        worker.start()
    barrier.wait()
    before = _server_cpu(cluster)
    ended = [done.get() for _ in workers]
    server = _server_cpu(cluster) - before
    barrier.wait()
    for worker in workers:
        worker.join()
    seconds = max(end for _, _, end in ended) - min(began for _, began, _ in ended)
    with closing(PostgresFactStore(url)) as store:
        found = sum(graph.operations for graph in store.graphs())
    if found != spans // processors * processors:
        raise SystemExit(f"{found} of {spans} operations are in the store")
    name = f"{processors} processor{'s' if processors > 1 else ''}"
    return Measured(name, found, seconds, sum(cpu for cpu, _, _ in ended), server)


def measure_baseline(cluster: Cluster, spans: int) -> Measured:
    """Rows made beforehand; only writing them is measured."""
    rng = random.Random(3)
    batches = [
        _baseline_rows(rng, first, min(_BATCH, spans - first)) for first in range(0, spans, _BATCH)
    ]
    with psycopg.connect(cluster.new_database(), autocommit=True) as connection:
        connection.execute(_TABLES)
        before, began, cpu = _server_cpu(cluster), time.monotonic(), time.process_time()
        for rows in batches:
            _put(connection, rows)
        seconds, client = time.monotonic() - began, time.process_time() - cpu
        server = _server_cpu(cluster) - before
    return Measured("plain COPY + ON CONFLICT, 14 rows", spans, seconds, client, server)


def _baseline_rows(rng: random.Random, first: int, count: int) -> _Rows:
    rows: _Rows = {name: [] for name in _TYPES}
    for number in range(first, first + count):
        graph, key = rng.randrange(GRAPHS), rng.randbytes(24)
        rows["t_op"].append((number, key, graph, number, number + 5, rng.randbytes(700)))
        rows["t_produced"] += [(graph, rng.getrandbits(63), number) for _ in range(3)]
        rows["t_used"] += [(graph, rng.getrandbits(63), number) for _ in range(10)]
    return rows


def _put(connection: psycopg.Connection[tuple[Any, ...]], rows: _Rows) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        for table, each in rows.items():
            with cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)".encode()) as copy:
                copy.set_types(_TYPES[table])
                for row in each:
                    copy.write_row(row)
        cursor.execute("INSERT INTO op SELECT * FROM t_op ON CONFLICT DO NOTHING")
        for name in ("produced", "used"):
            statement = f"INSERT INTO {name} SELECT * FROM t_{name} ORDER BY 1, 2, 3"
            cursor.execute(f"{statement} ON CONFLICT DO NOTHING".encode())
        cursor.execute("TRUNCATE t_op, t_produced, t_used")


def _server_cpu(cluster: Cluster) -> float:
    return sum(usage(cluster.pid).seconds.values())


def table(rows: list[Measured]) -> str:
    baseline, one = rows[0].rate, rows[1].rate
    lines = [
        "| what | spans | spans/s | client CPU us/span | server CPU us/span | spans/s per core"
        " | to plain | to one |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        per_span = [1e6 * cpu / row.spans for cpu in (row.client, row.server)]
        lines.append(
            f"| {row.name} | {row.spans:,} | {row.rate:,.0f} | {per_span[0]:.0f} |"
            f" {per_span[1]:.0f} | {1e6 / sum(per_span):,.0f} | {row.rate / baseline:.2f} |"
            f" {row.rate / one:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--spans", type=int, default=100_000)
    options = parser.parse_args()
    cluster = Cluster(durable=True, shared_buffers=SHARED_BUFFERS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = [measure_baseline(cluster, min(options.spans, 40_000))]
            rows += [measure(cluster, Path(folder), options.spans, number) for number in (1, 2)]
    finally:
        cluster.close()
    print(f"PostgreSQL, fsync on, shared_buffers {SHARED_BUFFERS}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
