"""What goes on under load and to destinations that are slow, dead or choosy."""

from __future__ import annotations

import random
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.exporter.delivery import DELIVERED, Delivery
from memtrace_collector.exporter.otlp import OtlpDestination
from memtrace_collector.log.format import Encoding, LogRecord, Signal
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.otlp.slices import sliced, split
from memtrace_collector.processor.forwarder import Forwarder, Pace, Stores
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.memtrace_collector.processor.sinks import SINKS, Sink
from tests.memtrace_collector.processor.spans import memory_span, plain_span, request
from tests.receivers import running

DEADLINE = 20.0
DOWN = Delivery("retry", "down")


class Counting:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, name: str, value: int, **_: str) -> None:
        self.counts[name] += value


class Scripted:
    """A destination that answers as it is told, several requests at a time."""

    name = "test"
    encodings: tuple[Encoding, ...] = ("protobuf", "json")
    longest_text: int | None = None

    def __init__(
        self, answer: Callable[[bytes], Delivery] = lambda body: DELIVERED, *, keeps: bool = True
    ) -> None:
        self.answer = answer
        self.keeps = keeps
        self.bodies: list[bytes] = []
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()

    def send(self, signal: Signal, payload: bytes, encoding: Encoding = "protobuf") -> Delivery:
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            delivery = self.answer(payload)
        finally:
            with self._lock:
                self._now -= 1
        if delivery is DELIVERED and self.keeps:
            with self._lock:
                self.bodies.append(payload)
        return delivery


class Line:
    """A log, its projection and the forwarders behind it."""

    def __init__(self, folder: Path) -> None:
        self.log = SegmentLog(folder / "log", fsync=False)
        self.store = InMemoryFactStore()
        self.metrics = Counting()

    def append(
        self,
        *bodies: ExportTraceServiceRequest | bytes,
        tenant: str = "default",
        signal: Signal = "traces",
        encoding: Encoding = "protobuf",
    ) -> list[LogPosition]:
        data = [body if isinstance(body, bytes) else body.SerializeToString() for body in bodies]
        records = [LogRecord(tenant, time.time_ns(), signal, encoding, body) for body in data]
        return [self.log.append(record).result(DEADLINE) for record in records]

    def project(self) -> None:
        Projector(self.log.folder, self.store, RecordReader()).run_once()

    def forwarder(self, destination: object, **pace: object) -> Forwarder:
        self.project()
        stores = Stores(self.store, self.store)
        usual = Pace()._replace(**pace)
        return Forwarder(
            self.log.folder, stores, RecordReader(), destination, pace=usual, metrics=self.metrics
        )

    @property
    def cursor(self) -> LogPosition:
        return self.store.cursor("forward:test")


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    line = Line(tmp_path)
    yield line
    line.log.close()


def spans(*bodies: bytes) -> list[bytes]:
    return [data for body in bodies for scope in split(sliced(body)) for data in scope.spans]


def plain(number: int, size: int = 10) -> ExportTraceServiceRequest:
    return request(plain_span(number, number, said="x" * size))


def wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "not in time"
        time.sleep(0.005)


def test_small_records_of_one_tenant_and_signal_go_as_one_request(line: Line) -> None:
    messages = [plain(number) for number in range(1, 51)]
    line.append(*messages)
    destination = Scripted()
    assert line.forwarder(destination).run_once().records == 50
    (body,) = destination.bodies
    assert spans(body) == spans(*(message.SerializeToString() for message in messages))
    assert line.cursor == line.log.end


def test_tenants_signals_encodings_and_sizes_are_kept_apart(line: Line) -> None:
    body = plain(1).SerializeToString()
    line.append(body, body)
    line.append(body, tenant="other")
    line.append(b"", signal="logs")
    line.append(b'{"resourceSpans":[]}', b'{"resourceSpans": []}', encoding="json")
    line.append(plain(2, 900), plain(3, 900))
    destination = Scripted()
    line.forwarder(destination, merge_bytes=1_000, connections=1).run_once()
    assert destination.bodies[:5] == [
        body + body,
        body,
        b"",
        b'{"resourceSpans":[]}',
        b'{"resourceSpans": []}',
    ]
    assert [len(spans(body)) for body in destination.bodies[5:]] == [1, 1]


def test_several_requests_are_under_way_and_no_more_than_allowed(line: Line) -> None:
    line.append(*(plain(number) for number in range(1, 41)))
    full = threading.Barrier(4, timeout=DEADLINE)

    def answer(body: bytes) -> Delivery:
        full.wait()
        return DELIVERED

    destination = Scripted(answer)
    line.forwarder(destination, merge_bytes=0, connections=4).run_once()
    assert destination.most_at_once == 4
    assert len(destination.bodies) == 40


def test_the_cursor_passes_no_request_that_is_not_answered(line: Line) -> None:
    messages = [plain(number) for number in range(1, 5)]
    positions = line.append(*messages)
    slow, go = messages[1].SerializeToString(), threading.Event()

    def answer(body: bytes) -> Delivery:
        if body == slow:
            assert go.wait(DEADLINE)
        return DELIVERED

    destination = Scripted(answer)
    forwarder = line.forwarder(destination, merge_bytes=0, connections=4)
    thread = threading.Thread(target=forwarder.run_once)
    thread.start()
    wait_until(lambda: len(destination.bodies) == 3)
    assert line.cursor in (START, positions[1])
    go.set()
    thread.join()
    assert line.cursor == line.log.end


@pytest.mark.fault("F22")
def test_what_was_answered_is_not_sent_again_when_another_request_was_not(line: Line) -> None:
    messages = [plain(number) for number in range(1, 31)]
    line.append(*messages)
    chance = random.Random(7)

    def flapping(body: bytes) -> Delivery:
        return DELIVERED if chance.random() < 0.5 else DOWN

    destination = Scripted(flapping)
    forwarder = line.forwarder(destination, merge_bytes=0, connections=4)
    for _ in range(1_000):
        if line.cursor == line.log.end:
            break
        forwarder.run_once()
    assert sorted(spans(*destination.bodies)) == sorted(
        spans(*(message.SerializeToString() for message in messages))
    )


@pytest.mark.fault("F22")
@pytest.mark.parametrize("state", ["dead", "slow"])
def test_memory_is_bounded_whatever_waits_for_a_destination(line: Line, state: str) -> None:
    megabyte = 1 << 20
    for number in range(1, 61):
        line.append(plain(number, megabyte))
    slow = threading.Event()

    def answer(body: bytes) -> Delivery:
        if state == "dead":
            return DOWN
        slow.wait(0.01)
        return DELIVERED

    forwarder = line.forwarder(Scripted(answer, keeps=False))
    tracemalloc.start()
    try:
        for _ in range(4):
            forwarder.run_once()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 * megabyte
    assert held < megabyte, "the log is the queue"
    assert (line.cursor == line.log.end) is (state == "slow")


@pytest.mark.otlp_rule("C10")
@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_a_request_that_is_too_large_goes_on_in_parts(
    line: Line, tmp_path: Path, transport: str
) -> None:
    sent = [plain_span(1, number, said="x" * 2_000) for number in range(1, 200)]
    giant = plain_span(1, 500, said="x" * 60_000)
    line.append(request(*sent[:90], giant, *sent[90:]))
    with running(tmp_path / "far", max_request_bytes=50_000) as far:
        url = far.http if transport == "http" else f"grpc://{far.grpc}"
        destination = OtlpDestination("test", url)
        progress = line.forwarder(destination).run_once()
        destination.close()
        arrived = spans(*(record.body for record in far.records()))
    assert progress.retry is None and line.cursor == line.log.end
    assert arrived == [span.SerializeToString() for span in sent]
    assert line.metrics.counts["memtrace.forward.rejected"] == 1


def mixed() -> tuple[ExportTraceServiceRequest, list[bytes]]:
    """A request with two spans of ours, and those beside them, which nobody can decode."""
    begin = b"\x0a\x10" + b"\x07" * 16 + b"\x12\x08"
    strange = [
        begin + bytes([number]) * 8 + b"\x2a\x01x" + b"\x4a\x05broken" + b"\xff" * number
        for number in range(1, 6)
    ]
    ours = [
        memory_span(1, 1, "ingest", outputs=["msg:m/1@a"], values={"msg:m/1@a": "secret"}),
        memory_span(1, 2, "extract", inputs=["msg:m/1@a"], outputs=["fact:f@b"]),
    ]
    message = sliced(request(*ours).SerializeToString())
    container = message.resource_spans[0].scope_spans[0].spans
    whole = list(container)
    del container[:]
    container.extend([strange[0], whole[0], *strange[1:3], whole[1], *strange[3:]])
    return message, strange


@pytest.mark.otlp_rule("C36")
@pytest.mark.parametrize("transport", SINKS)
def test_spans_that_are_not_ours_are_never_decoded_and_arrive_byte_for_byte(
    line: Line, transport: str
) -> None:
    message, strange = mixed()
    alone = b"\x0a\x07\x12\x05\x12\x03\xff\xff\xff"
    line.append(message.SerializeToString(), alone)
    sink = Sink()
    with SINKS[transport](sink) as url:
        destination = OtlpDestination("test", url)
        line.forwarder(destination, merge_bytes=0, connections=1).run_once()
        destination.close()
    arrived = spans(sink.bodies[0])
    assert [arrived[place] for place in (0, 2, 3, 5, 6)] == strange
    first, second = (Span.FromString(arrived[place]) for place in (1, 4))
    assert b"secret" not in arrived[1] and first.name == "memtrace.ingest"
    assert [link.span_id for link in second.links] == [first.span_id]
    assert sink.bodies[1] == alone
    assert line.cursor == line.log.end


def test_spans_of_ours_without_anything_to_change_stay_as_they_came(line: Line) -> None:
    span = memory_span(1, 1, "ingest", outputs=["msg:m/1@a"]).SerializeToString() + b"\xfa\x07\x01x"
    message = sliced(request(Span(name="placeholder")).SerializeToString())
    message.resource_spans[0].scope_spans[0].spans[0] = span
    line.append(message.SerializeToString())
    destination = Scripted()
    line.forwarder(destination).run_once()
    assert destination.bodies == [message.SerializeToString()]


@pytest.mark.otlp_rule("C33")
def test_spans_that_were_refused_do_not_go_on_beside_ours(line: Line) -> None:
    ours = memory_span(1, 1, "ingest", outputs=["msg:m/1@a"])
    line.append(request(ours, Span(name="no ids"), plain_span(1, 2)))
    destination = Scripted()
    line.forwarder(destination).run_once()
    assert [Span.FromString(data).name for data in spans(*destination.bodies)] == [
        "memtrace.ingest",
        "GET /",
    ]


def test_a_cursor_from_when_the_facts_kept_it_is_taken_over_once(line: Line) -> None:
    first, _ = line.append(plain(1), plain(2))
    line.project()
    second = line.log.end
    line.store.set_cursor("forward:test", second)
    cursors = InMemoryFactStore()
    destination = Scripted()
    stores = Stores(line.store, cursors)
    Forwarder(line.log.folder, stores, RecordReader(), destination).run_once()
    assert destination.bodies == [] and cursors.cursor("forward:test") == second
    cursors.set_cursor("forward:test", first)
    Forwarder(line.log.folder, stores, RecordReader(), destination).run_once()
    assert len(spans(*destination.bodies)) == 2
