from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.exporter.delivery import DELIVERED, Delivery
from memtrace_collector.exporter.otlp import OtlpDestination
from memtrace_collector.log.format import Encoding, LogRecord, Signal
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.otlp.slices import sliced
from memtrace_collector.processor import forwarder as forwarder_module
from memtrace_collector.processor.forwarder import Forwarder, Pace, Stores
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.processor.spans import (
    all_spans,
    attribute,
    key,
    memory_span,
    names,
    plain_span,
    relations,
    request,
)
from tests.receivers import running

DEADLINE = 20.0
ONE_BY_ONE = Pace(connections=1, merge_bytes=0)
MESSAGE, FACT, MEMORY, OLD = "msg:m/1@a", "fact:f@b", "mem:mem0:7@c", "mem:mem0:7@0"


class Collecting:
    """A destination that keeps what it is sent, after the answers it was told to give."""

    def __init__(self, *answers: Delivery, encodings: tuple[Encoding, ...] = ("protobuf", "json")):
        self.name = "test"
        self.encodings = frozenset(encodings)
        self.longest_text: int | None = None
        self.answers = list(answers)
        self.seen: list[tuple[Signal, bytes, Encoding]] = []

    def send(self, signal: Signal, payload: bytes, encoding: Encoding = "protobuf") -> Delivery:
        self.seen.append((signal, payload, encoding))
        return self.answers.pop(0) if self.answers else DELIVERED

    def spans(self) -> list:
        bodies = [payload for signal, payload, _ in self.seen if signal == "traces"]
        return [s for body in bodies for s in all_spans(ExportTraceServiceRequest.FromString(body))]


class Pipeline:
    """A log, what is projected of it, and a forwarder behind that."""

    def __init__(self, folder: Path) -> None:
        self.log = SegmentLog(folder / "log", fsync=False)
        self.store = InMemoryFactStore()
        self.reader = RecordReader()

    def append(
        self,
        body: ExportTraceServiceRequest | bytes,
        signal: Signal = "traces",
        encoding: Encoding = "protobuf",
    ) -> None:
        data = body if isinstance(body, bytes) else body.SerializeToString()
        record = LogRecord("default", time.time_ns(), signal, encoding, data)
        self.log.append(record).result(DEADLINE)

    def project(self) -> None:
        Projector(self.log.folder, self.store, self.reader).run_once()

    def forwarder(
        self, destination: object, pace: Pace = ONE_BY_ONE, **options: object
    ) -> Forwarder:
        stores = Stores(self.store, self.store)
        return Forwarder(self.log.folder, stores, self.reader, destination, pace=pace, **options)

    def forward(self, *messages: ExportTraceServiceRequest, **options: object) -> Collecting:
        """Append, project and forward everything; what arrived."""
        for message in messages:
            self.append(message)
        self.project()
        destination = Collecting()
        self.forwarder(destination, **options).run_once()
        return destination


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path)
    yield pipeline
    pipeline.log.close()


def lifecycle() -> list[ExportTraceServiceRequest]:
    """A message becomes a fact becomes a memory, which another process reads and answers with."""
    return [
        request(
            memory_span(1, 1, "add", composite=True),
            memory_span(1, 2, "ingest", parent=1, outputs=[MESSAGE]),
            memory_span(1, 3, "extract", parent=1, inputs=[MESSAGE], outputs=[FACT]),
            memory_span(1, 4, "decide", parent=1, inputs=[FACT], decisions=[[FACT, "UPDATE", OLD]]),
            memory_span(
                1, 5, "update", parent=1, inputs=[FACT], outputs=[MEMORY], supersedes=[OLD]
            ),
        ),
        request(memory_span(9, 1, "create", outputs=[OLD]), service="before"),
        request(
            memory_span(2, 1, "retrieve", delivered=[MEMORY]),
            memory_span(2, 2, "answer", inputs=[MEMORY], outputs=["ans:x@d"]),
            service="reader",
        ),
    ]


def test_links_across_processes_are_completed(pipeline: Pipeline) -> None:
    spans = {
        (span.trace_id.hex()[-1], span.span_id.hex()[-1]): relations(span)
        for span in pipeline.forward(*lifecycle()).spans()
    }
    assert spans["1", "1"] == {}
    assert spans["1", "3"] == {key(1, 2): "extracted_from"}
    assert spans["1", "5"] == {
        key(1, 3): "derived_from",
        key(1, 4): "decided_by",
        key(9, 1): "supersedes",
    }
    assert spans["2", "1"] == {key(1, 5): "retrieved_from"}
    assert spans["2", "2"] == {key(2, 1): "answered_with"}


def test_the_host_s_links_stay_as_they_are(pipeline: Pipeline) -> None:
    linked = memory_span(
        3, 1, "retrieve", delivered=[MEMORY], links=[(key(7, 7), "retrieved_from")]
    )
    foreign = linked.links.add(trace_id=b"\5" * 16, span_id=b"\6" * 8)
    foreign.attributes.append(attribute("mine", "x"))
    messages = [*lifecycle(), request(linked)]
    found = pipeline.forward(*messages).spans()[-1]
    assert list(found.links)[:2] == list(linked.links)
    assert relations_of_ours(found) == [key(7, 7), key(1, 5)]


def relations_of_ours(span: object) -> list:
    ours = type(span)()
    ours.CopyFrom(span)
    kept = [link for link in ours.links if link.attributes[0].key != "mine"]
    del ours.links[:]
    ours.links.extend(kept)
    return list(relations(ours))


CONTENT = {
    "memtrace.values": '{"x": "secret"}',
    "memtrace.values.1": "secret",
    "memtrace.expected": "secret",
    "memtrace.flag.reason": "secret",
    "gen_ai.input.messages": "secret",
    "gen_ai.output.messages": "secret",
    "gen_ai.memory.query.text": "secret",
    "gen_ai.memory.records": "secret",
}


def with_content() -> ExportTraceServiceRequest:
    span = memory_span(1, 1, "ingest", outputs=[MESSAGE])
    span.attributes.extend(attribute(name, value) for name, value in CONTENT.items())
    event = span.events.add(name="gen_ai.client.inference.operation.details")
    event.attributes.extend(attribute(name, value) for name, value in CONTENT.items())
    event.attributes.append(attribute("harmless", "yes"))
    return request(span)


@pytest.mark.fault("F35")
def test_content_stays_here_unless_asked_for(pipeline: Pipeline) -> None:
    destination = pipeline.forward(with_content())
    (span,) = destination.spans()
    assert not names(span) & set(CONTENT)
    assert {"memtrace.step", "memtrace.lineage"} <= names(span)
    assert [item.key for item in span.events[0].attributes] == ["harmless"]
    assert b"secret" not in destination.seen[0][1]


def test_content_goes_on_when_asked_for(pipeline: Pipeline) -> None:
    (span,) = pipeline.forward(with_content(), values=True).spans()
    assert set(CONTENT) <= names(span)
    assert {item.key for item in span.events[0].attributes} == {*CONTENT, "harmless"}


@pytest.mark.fault("F35")
def test_an_evaluation_result_goes_on_without_its_content(pipeline: Pipeline) -> None:
    message = ExportLogsServiceRequest()
    records = message.resource_logs.add().scope_logs.add().log_records
    said = {
        "gen_ai.evaluation.name": "correctness",
        "gen_ai.evaluation.explanation": "secret",
        "memtrace.expected": "secret",
    }
    evaluation = records.add(event_name="gen_ai.evaluation.result", time_unix_nano=1)
    evaluation.attributes.extend(attribute(name, value) for name, value in said.items())
    other = records.add(event_name="mine", time_unix_nano=2)
    other.attributes.append(attribute("gen_ai.input.messages", "theirs"))
    for values in (False, True):
        pipeline.append(message.SerializeToString(), "logs")
        ((_, payload, _),) = pipeline.forward(values=values).seen
        found = ExportLogsServiceRequest.FromString(payload).resource_logs[0].scope_logs[0]
        assert found.log_records[1] == other
        assert names(found.log_records[0]) == (set(said) if values else {"gen_ai.evaluation.name"})


def test_records_without_a_memory_span_pass_byte_for_byte(pipeline: Pipeline) -> None:
    unknown_field = b"\xf2\x3f\x05hello"  # field 1022, kept by nobody who decodes and forgets
    plain = request(plain_span(1, 1)).SerializeToString() + unknown_field
    mentions = request(plain_span(1, 2, note="memtrace. is only mentioned")).SerializeToString()
    log_request = ExportLogsServiceRequest()
    log_request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1)
    logs = log_request.SerializeToString()
    in_json = b'{"resourceSpans": [ ]}'
    pipeline.append(plain)
    pipeline.append(mentions)
    pipeline.append(logs, "logs")
    pipeline.append(in_json, "traces", "json")
    assert pipeline.forward().seen == [
        ("traces", plain, "protobuf"),
        ("traces", mentions, "protobuf"),
        ("logs", logs, "protobuf"),
        ("traces", in_json, "json"),
    ]


def test_json_is_rewritten_for_a_destination_that_takes_none(pipeline: Pipeline) -> None:
    span = {"traceId": "01" * 16, "spanId": "02" * 8, "name": "s"}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    pipeline.append(body, "traces", "json")
    pipeline.project()
    destination = Collecting(encodings=("protobuf",))
    pipeline.forwarder(destination).run_once()
    assert [span.name for span in destination.spans()] == ["s"]


def test_only_what_a_destination_finds_too_long_is_shortened_in_whatever_form_it_came(
    pipeline: Pipeline,
) -> None:
    said = {"key": "said", "value": {"stringValue": "x" * 3_001}}
    span = {"traceId": "01" * 16, "spanId": "02" * 8, "attributes": [said]}
    in_json = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    short = request(plain_span(1, 1, said="x" * 3_000)).SerializeToString()
    broken = sliced(b"")
    # the bytes of others are not read: nobody saw that this is no span
    broken.resource_spans.add().scope_spans.add().spans.append(b"\xff" * 3_001)
    unread = broken.SerializeToString()
    for body, encoding in ((in_json, "json"), (short, "protobuf"), (unread, "protobuf")):
        pipeline.append(body, "traces", encoding)
    pipeline.project()
    destination = Collecting()
    destination.longest_text = 3_000
    pipeline.forwarder(destination).run_once()
    (_, shortened, encoding), *others = destination.seen
    (kept,) = all_spans(ExportTraceServiceRequest.FromString(shortened))
    assert kept.attributes[0].value.string_value == "x" * 2_997 + "…"
    assert encoding == "protobuf"
    assert others == [("traces", short, "protobuf"), ("traces", unread, "protobuf")]


def test_spans_that_are_not_ours_are_untouched_beside_ours(pipeline: Pipeline) -> None:
    neighbour = plain_span(1, 7, gen_ai__input__messages="theirs")
    message = request(memory_span(1, 1, "ingest", outputs=[MESSAGE]), neighbour)
    assert pipeline.forward(message).spans()[1] == neighbour


def test_an_operation_is_sent_on_once_however_often_it_came(pipeline: Pipeline) -> None:
    first = memory_span(1, 1, "ingest", outputs=[MESSAGE])
    second = memory_span(1, 2, "ingest", outputs=["msg:m/2@b"])
    messages = [request(first), request(first, second, first), request(first)]
    destination = pipeline.forward(*messages)
    assert [span.span_id[-1] for span in destination.spans()] == [1, 2]
    assert len(destination.seen) == 2
    again = Collecting()
    pipeline.forwarder(again).run_once()
    assert again.seen == []


def test_a_record_waits_for_its_projection_but_not_for_ever(pipeline: Pipeline) -> None:
    pipeline.append(lifecycle()[0])
    destination = Collecting()
    assert (
        pipeline.forwarder(destination, ONE_BY_ONE._replace(settle_seconds=60)).run_once().unsettled
    )
    assert destination.seen == []
    progress = pipeline.forwarder(destination, ONE_BY_ONE._replace(settle_seconds=0)).run_once()
    assert (progress.records, progress.unsettled) == (1, False)
    assert len(destination.spans()) == 5


def test_the_cursor_moves_only_after_delivery(pipeline: Pipeline) -> None:
    messages = lifecycle()
    for message in messages:
        pipeline.append(message)
    pipeline.project()
    destination = Collecting(DELIVERED, Delivery("retry", "down", 3.0))
    forwarder = pipeline.forwarder(destination)
    progress = forwarder.run_once()
    assert progress.records == 1
    assert progress.retry == Delivery("retry", "down", 3.0)
    assert forwarder.run_once().records == 2
    bodies = [payload for _, payload, _ in destination.seen]
    assert bodies[1] == bodies[2], "the same record again, with the same bytes"
    assert len(bodies) == 4


@pytest.mark.fault("F22")
def test_a_refused_record_is_counted_and_does_not_block_the_next(pipeline: Pipeline) -> None:
    counts: dict[str, int] = {}

    class Counting:
        def add(self, name: str, value: int, **attributes: str) -> None:
            counts[name] = counts.get(name, 0) + value

    for message in lifecycle():
        pipeline.append(message)
    pipeline.project()
    destination = Collecting(Delivery("refused", "3 rejected", rejected=3))
    progress = pipeline.forwarder(destination, metrics=Counting()).run_once()
    assert progress.records == 3
    assert counts["memtrace.forward.rejected"] == 3
    assert counts["memtrace.forward.requests"] == 3


def test_a_record_that_cannot_be_read_is_not_sent_on_and_blocks_nobody(
    pipeline: Pipeline,
) -> None:
    pipeline.append(b"\n\x0dmemtrace.step and nothing else")
    destination = pipeline.forward(*lifecycle())
    assert len(destination.seen) == 3


def test_the_cursor_reaches_the_end_also_when_nothing_was_to_be_sent(pipeline: Pipeline) -> None:
    span = memory_span(1, 1, "ingest", outputs=[MESSAGE])
    pipeline.forward(request(span), request(span))
    assert pipeline.store.cursor("forward:test") == pipeline.log.end


def wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "not in time"
        time.sleep(0.01)


@pytest.mark.fault("F22")
@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_what_came_while_the_next_hop_was_dead_arrives_once_when_it_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(forwarder_module, "_LONGEST_RETRY_SECONDS", 0.2)
    with running(tmp_path / "probe") as probe:
        ports = {"http_port": probe.server.http_port, "grpc_port": probe.server.grpc_port}
    destination = OtlpDestination("next", f"{scheme}://127.0.0.1:{ports[f'{scheme}_port']}")
    log = SegmentLog(tmp_path / "log")
    store = SqliteFactStore(tmp_path / "facts.db")
    reader = RecordReader()
    stop = threading.Event()
    threads = [
        threading.Thread(target=stage.run, args=(stop,))
        for stage in (
            Projector(log.folder, store, reader, wait=log.wait),
            Forwarder(log.folder, Stores(store, store), reader, destination, wait=log.wait),
        )
    ]
    for thread in threads:
        thread.start()
    bodies = [message.SerializeToString() for message in lifecycle()]
    for body in bodies:
        log.append(LogRecord("default", time.time_ns(), "traces", "protobuf", body)).result()
    try:
        wait_until(lambda: store.cursor() == log.end)
        with running(tmp_path / "next", **ports) as following:
            wait_until(lambda: store.cursor("forward:next") == log.end)
            messages = [
                ExportTraceServiceRequest.FromString(record.body) for record in following.records()
            ]
    finally:
        stop.set()
        for thread in threads:
            thread.join(DEADLINE)
        destination.close()
        store.close()
        log.close()
    spans = [(s.trace_id, s.span_id) for message in messages for s in all_spans(message)]
    assert len(spans) == len(set(spans)) == 8
    retrieve = next(s for m in messages for s in all_spans(m) if s.name == "search_memory")
    assert relations(retrieve) == {key(1, 5): "retrieved_from"}
