from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.control import Erase, erase_record
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import segment_path
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor import projector as projector_module
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.base import Applied
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_collector.telemetry.metrics import Exemplar, NullMetrics
from tests.contract import scenarios
from tests.memtrace_collector.processor.spans import memory_span, plain_span, request

DEADLINE = 20.0


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SegmentLog]:
    log = SegmentLog(tmp_path / "log", fsync=False)
    yield log
    log.close()


def append(log: SegmentLog, *messages: ExportTraceServiceRequest | bytes) -> list[LogPosition]:
    bodies = [m if isinstance(m, bytes) else m.SerializeToString() for m in messages]
    records = [LogRecord("default", time.time_ns(), "traces", "protobuf", b) for b in bodies]
    return [log.append(record).result(DEADLINE) for record in records]


def ingest(number: int, graph: str = "g") -> ExportTraceServiceRequest:
    return request(memory_span(number, 1, "ingest", graph=graph, outputs=[f"msg:{number}@a"]))


def project(log: SegmentLog, store: object) -> int:
    return Projector(log.folder, store, RecordReader()).run_once()


def count(store: InMemoryFactStore | SqliteFactStore, graph: str = "g") -> int:
    return len(list(store.all_operations(graph)))


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_the_contract_vectors_give_the_same_graph_as_without_a_log(
    log: SegmentLog, encoding: str
) -> None:
    facts: list[SpanFacts] = []
    for name in scenarios.NAMES:
        path = scenarios.FOLDER / f"{name}.otlp.json"
        body = path.read_bytes()
        if encoding == "protobuf":
            body = scenarios.request(name).SerializeToString()
        log.append(LogRecord("default", 1, "traces", encoding, body)).result(DEADLINE)
        facts += scenarios.facts(name)
    store = InMemoryFactStore()
    assert project(log, store) == len(scenarios.NAMES)
    direct = InMemoryFactStore.of(facts)
    graphs = [summary.graph_id for summary in direct.graphs()]
    assert graphs
    assert [store.graph_hash(graph) for graph in graphs] == [
        direct.graph_hash(graph) for graph in graphs
    ]


def test_projecting_goes_on_where_it_stopped(log: SegmentLog, tmp_path: Path) -> None:
    append(log, *(ingest(number) for number in range(1, 4)))
    store = SqliteFactStore(tmp_path / "facts.db")
    assert project(log, store) == 3
    assert project(log, store) == 0
    store.close()
    append(log, ingest(4))
    store = SqliteFactStore(tmp_path / "facts.db")
    assert project(log, store) == 1
    assert count(store) == 4
    assert store.cursor() == log.end
    store.close()


def test_a_request_without_a_marker_is_never_decoded(
    log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, request(plain_span(1, 1)), b"not even protobuf", request(plain_span(1, 2)))
    store = InMemoryFactStore()
    assert project(log, store) == 3
    assert store.graphs() == []
    assert store.cursor() == log.end
    assert not (log.folder / "quarantine.jsonl").exists()


class Counting(NullMetrics):
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        self.counts[name] = self.counts.get(name, 0) + value


def test_a_poison_record_is_noted_once_and_stops_nobody(log: SegmentLog) -> None:
    positions = append(log, ingest(1), b"\n\x0dmemtrace.step and nothing else", ingest(2))
    metrics = Counting()
    for _ in range(2):
        store = InMemoryFactStore()
        Projector(log.folder, store, RecordReader(), metrics=metrics).run_once()
        assert count(store) == 2
    assert metrics.counts["memtrace.projection.quarantined"] == 1
    (note,) = (log.folder / "quarantine.jsonl").read_text().splitlines()
    assert LogPosition(json.loads(note)["segment"], json.loads(note)["offset"]) == positions[1]
    assert "InvalidRequestError" in json.loads(note)["reason"]


class Picky(InMemoryFactStore):
    """Cannot store what one trace says."""

    def apply(self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition) -> Applied:
        rows = list(batch)
        if any(facts.operation and facts.operation.trace_id.endswith("2") for _, facts in rows):
            raise ValueError("cannot be stored")
        return super().apply(rows, cursor)


def test_facts_that_cannot_be_stored_cost_only_their_record(log: SegmentLog) -> None:
    append(log, ingest(1), ingest(2), ingest(3))
    store = Picky()
    assert project(log, store) == 3
    assert count(store) == 2
    assert store.cursor() == log.end


def test_few_bad_facts_among_many_cost_few_attempts(log: SegmentLog) -> None:
    append(log, *(ingest(number) for number in range(1, 513)))
    attempts = 0

    class Fussy(InMemoryFactStore):
        def apply(
            self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition
        ) -> Applied:
            nonlocal attempts
            attempts += 1
            rows = list(batch)
            bad = {f"{number:032x}" for number in (3, 400)}
            if any(facts.operation and facts.operation.trace_id in bad for _, facts in rows):
                raise ValueError("cannot be stored")
            return super().apply(rows, cursor)

    store = Fussy()
    project(log, store)
    assert count(store) == 510
    assert attempts < 50
    assert store.cursor() == log.end


def test_a_control_record_is_carried_out_between_what_is_before_and_behind(
    log: SegmentLog,
) -> None:
    order = erase_record(Erase("default", "g", "1"), 5)
    append(log, ingest(1))
    (at,) = [log.append(order).result(5)]
    append(log, ingest(2))
    store = InMemoryFactStore()
    seen: list[tuple[LogRecord, int, LogPosition]] = []

    def obey(record: LogRecord) -> None:
        seen.append((record, count(store), store.cursor()))

    Projector(log.folder, store, RecordReader(), obey=obey).run_once()
    assert seen == [(order, 1, at)]
    assert count(store) == 2 and store.cursor() == log.end
    Projector(log.folder, store, RecordReader(), obey=obey).run_once()
    assert len(seen) == 1


def test_a_store_that_fails_is_retried_and_nothing_is_skipped(
    log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projector_module, "_RETRY_SECONDS", 0.01)
    append(log, ingest(1), ingest(2))
    failures = [OSError(28, "No space left on device")] * 3

    class Failing(InMemoryFactStore):
        def apply(
            self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition
        ) -> Applied:
            if failures:
                raise failures.pop()
            return super().apply(batch, cursor)

    store = Failing()
    stop = threading.Event()
    projector = Projector(log.folder, store, RecordReader(), wait=log.wait)
    thread = threading.Thread(target=projector.run, args=(stop,))
    thread.start()
    wait_until(lambda: count(store) == 2)
    append(log, ingest(3))
    wait_until(lambda: count(store) == 3)
    stop.set()
    thread.join(DEADLINE)
    assert not failures
    assert store.cursor() == log.end


def wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "not in time"
        time.sleep(0.005)


def test_damage_in_the_log_is_noted_and_the_rest_projected(log: SegmentLog) -> None:
    positions = append(log, ingest(1), ingest(2), ingest(3))
    path = segment_path(log.folder, positions[1].segment)
    data = bytearray(path.read_bytes())
    data[positions[1].offset + 40] ^= 0xFF
    path.write_bytes(data)
    store = InMemoryFactStore()
    assert project(log, store) == 2
    (note,) = (log.folder / "quarantine.jsonl").read_text().splitlines()
    assert json.loads(note)["offset"] == positions[1].offset


def test_the_cursor_reaches_the_end_also_over_damage_at_it(log: SegmentLog) -> None:
    append(log, ingest(1), ingest(2))
    log.close()
    path = segment_path(log.folder, 1)
    path.write_bytes(path.read_bytes()[:-1])
    segment_path(log.folder, 2).touch()
    reopened = SegmentLog(log.folder, fsync=False)
    store = InMemoryFactStore()
    assert project(reopened, store) == 1
    assert store.cursor() == reopened.end
    reopened.close()


def test_a_large_log_is_applied_in_several_batches(
    log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projector_module, "MAX_BATCH_FACTS", 10)
    append(log, *(ingest(number) for number in range(1, 36)))
    sizes = []

    class Watching(InMemoryFactStore):
        def apply(
            self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition
        ) -> Applied:
            rows = list(batch)
            sizes.append(len(rows))
            return super().apply(rows, cursor)

    store = Watching()
    project(log, store)
    assert sizes == [10, 10, 10, 5]
    assert count(store) == 35


def test_what_comes_often_is_gathered_and_what_comes_alone_is_not(log: SegmentLog) -> None:
    batches = 0

    class Watching(InMemoryFactStore):
        def apply(
            self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition
        ) -> Applied:
            nonlocal batches
            batches += 1
            return super().apply(batch, cursor)

    store, stop = Watching(), threading.Event()
    projector = Projector(log.folder, store, RecordReader(), wait=log.wait)
    thread = threading.Thread(target=projector.run, args=(stop,))
    thread.start()
    try:
        append(log, ingest(1))
        wait_until(lambda: store.cursor() == log.end)
        assert batches == 1
        for number in range(2, 102):
            append(log, ingest(number))
            stop.wait(0.002)
        wait_until(lambda: store.cursor() == log.end)
    finally:
        stop.set()
        thread.join()
    assert count(store) == 101
    assert batches < 40


def test_thresholds_and_markers_are_the_configured_ones(log: SegmentLog) -> None:
    append(log, ingest(1))
    store = InMemoryFactStore()
    Projector(log.folder, store, RecordReader(markers=[b"other."])).run_once()
    assert store.graphs() == []
    assert store.cursor() == log.end


PROJECT = """
import sys
from pathlib import Path
from memtrace_collector.processor import projector
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.sqlite_facts import SqliteFactStore

projector.MAX_BATCH_FACTS = 20
store = SqliteFactStore(Path(sys.argv[2]))
sys.stdout.write("ready\\n")
sys.stdout.flush()
Projector(Path(sys.argv[1]), store, RecordReader()).run_once()
"""


def test_a_projector_killed_at_random_moments_ends_with_the_undisturbed_graph(
    log: SegmentLog, tmp_path: Path
) -> None:
    append(log, *(ingest(number) for number in range(1, 2000)))
    log.close()
    undisturbed = InMemoryFactStore()
    project(log, undisturbed)
    chance = random.Random(3)
    path = tmp_path / "facts.db"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    cursors = [START]
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", PROJECT, str(log.folder), str(path)],
            stdout=subprocess.PIPE,
            env=environment,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.random() / 5)
            process.send_signal(signal.SIGKILL)
        store = SqliteFactStore(path)
        cursors.append(store.cursor())
        store.close()
    store = SqliteFactStore(path)
    project(log, store)
    assert cursors == sorted(cursors)
    assert count(store) == 1999
    assert store.graph_hash("g") == undisturbed.graph_hash("g")
    store.close()
