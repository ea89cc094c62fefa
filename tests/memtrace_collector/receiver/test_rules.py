"""Rules of OTLP that concern both doors, or the connection rather than one request."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future

import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from memtrace_collector.log.errors import LogOverloadedError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.receiver import exports
from memtrace_collector.receiver.decode import decode_traces
from memtrace_collector.receiver.ingest import COMMIT_SECONDS, Ingest
from memtrace_collector.receiver.refusal import RETRY_AFTER_SECONDS, RefusedError
from memtrace_collector.receiver.server import Listen
from memtrace_collector.settings.server import ServerConfig
from tests.memtrace_collector.receiver.messages import (
    EXPORT,
    JSON,
    PROTOBUF,
    connected,
    head,
    traces,
    traces_json,
)
from tests.receivers import Receiver, serving

SDK_DEADLINE_SECONDS = 10
MAX_RESPONSE_BYTES = 4 << 20


def post(receiver: Receiver, body: bytes, content_type: str = PROTOBUF, **headers: str):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(
        f"{receiver.http}/v1/traces",
        content=body,
        headers={"content-type": content_type, **named},
        timeout=20,
    )


def export(receiver: Receiver, body: bytes) -> ExportTraceServiceResponse:
    with grpc.insecure_channel(receiver.grpc) as channel:
        answer = channel.unary_unary(EXPORT, None, None)(body, timeout=20)
        return ExportTraceServiceResponse.FromString(answer)


@pytest.mark.otlp_rule("C2")
def test_the_ports_are_those_of_the_specification_and_on_loopback() -> None:
    assert Listen() == Listen("127.0.0.1", grpc_port=4317, http_port=4318)
    server = ServerConfig()
    assert (server.host, server.grpc_port, server.http_port) == ("127.0.0.1", 4317, 4318)


@pytest.mark.otlp_rule("C9")
def test_the_limit_is_64_mib_unless_the_operator_says_otherwise() -> None:
    assert ServerConfig().max_request_bytes == 64 << 20
    assert Ingest(lambda record: Future()).max_request_bytes == 64 << 20


@pytest.mark.otlp_rule("C5")
def test_a_connection_carries_many_requests_one_after_another_and_pipelined(
    receiver: Receiver,
) -> None:
    bodies = [traces(number).SerializeToString() for number in range(1, 6)]
    with connected(receiver) as connection:
        for body in bodies:
            connection.send(head(len(body)) + body)
            answer = connection.answer()
            assert answer is not None
            assert (answer.status, answer.body) == (200, b"")
        connection.send(b"".join(head(len(body)) + body for body in bodies))
        for _ in bodies:
            answer = connection.answer()
            assert answer is not None
            assert answer.status == 200
    assert sorted(record.body for record in receiver.records()) == sorted(bodies * 2)


@pytest.mark.otlp_rule("C5", "C18")
def test_a_refusal_does_not_end_a_connection_and_what_is_no_http_does(receiver: Receiver) -> None:
    body = traces().SerializeToString()
    with connected(receiver) as connection:
        connection.send(head(3) + b"bad" + head(len(body)) + body)
        statuses = []
        for _ in range(2):
            answer = connection.answer()
            assert answer is not None
            statuses.append(answer.status)
        assert statuses == [400, 200]
        connection.send(b"\x16\x03\x01 this is TLS, say\r\n\r\n")
        answer = connection.answer()
        assert answer is not None
        assert answer.status == 400
        assert json.loads(answer.body)["code"] == 3
        assert connection.is_closed()


@pytest.mark.otlp_rule("C5")
def test_a_body_in_chunks_of_any_size_is_one_body(receiver: Receiver) -> None:
    body = traces(3).SerializeToString()
    with connected(receiver) as connection:
        connection.send(head(None))
        for at in range(0, len(body), 7):
            piece = body[at : at + 7]
            connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.send(b"0\r\n\r\n")
        answer = connection.answer()
    assert answer is not None
    assert answer.status == 200
    assert [record.body for record in receiver.records()] == [body]


@pytest.mark.otlp_rule("C6")
def test_a_response_is_not_compressed_whatever_the_request_accepts(receiver: Receiver) -> None:
    request = traces()
    request.resource_spans[0].scope_spans[0].spans.add(name="no ids")
    for accepts in ("gzip", "identity", "gzip;q=1.0, *;q=0"):
        answer = post(receiver, request.SerializeToString(), accept_encoding=accepts)
        assert "content-encoding" not in answer.headers
        partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
        assert partial.rejected_spans == 1


@pytest.mark.otlp_rule("C7")
def test_deflate_is_read_and_other_codings_are_named_what_to_use(receiver: Receiver) -> None:
    body = traces().SerializeToString()
    assert post(receiver, zlib.compress(body), content_encoding="deflate").status_code == 200
    assert [record.body for record in receiver.records()] == [body]
    for coding in ("zstd", "snappy", "br", "gzip, gzip"):
        answer = post(receiver, body, content_encoding=coding)
        assert answer.status_code == 415
        assert answer.headers["accept-encoding"] == "gzip, deflate"
        assert "gzip" in Status.FromString(answer.content).message


@pytest.mark.otlp_rule("C8")
@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "Application/JSON;charset=UTF-8", "application/json ;x=y"],
)
def test_the_media_type_counts_without_its_parameters(
    receiver: Receiver, content_type: str
) -> None:
    answer = post(receiver, traces_json(), content_type)
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)


@pytest.mark.otlp_rule("C11")
def test_no_response_is_large_however_large_the_mistake(receiver: Receiver) -> None:
    bad = traces()
    spans = bad.resource_spans[0].scope_spans[0].spans
    spans.extend([spans[0].__class__(name="n" * 100, trace_id=b"x" * 99)] * 50_000)
    answer = post(receiver, bad.SerializeToString())
    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_spans == 50_000
    assert len(answer.content) < 2_000
    assert export(receiver, bad.SerializeToString()).partial_success == partial
    malformed = traces_json(kind="K" * MAX_RESPONSE_BYTES, name={"x" * MAX_RESPONSE_BYTES: 1})
    for content_type in (JSON, PROTOBUF):
        answer = post(receiver, malformed, content_type)
        assert answer.status_code == 400
        assert len(answer.content) < 5_000
    with pytest.raises(grpc.RpcError) as caught:
        export(receiver, malformed)
    assert len(caught.value.details()) < 5_000


@pytest.mark.otlp_rule("C12")
def test_full_success_leaves_partial_success_unset(receiver: Receiver) -> None:
    body = traces().SerializeToString()
    assert post(receiver, body).content == b""
    assert post(receiver, traces_json(), JSON).json() == {}
    assert not export(receiver, body).HasField("partial_success")


@pytest.mark.otlp_rule("C14", "C30", "C31")
def test_a_json_partial_success_has_camel_case_names_and_its_count_as_a_string(
    receiver: Receiver,
) -> None:
    partial = post(receiver, traces_json(traceId="00" * 16), JSON).json()["partialSuccess"]
    assert partial["rejectedSpans"] == "1"
    assert set(partial) == {"rejectedSpans", "errorMessage"}


@pytest.mark.otlp_rule("C17")
def test_empty_resources_and_scopes_are_no_error(receiver: Receiver) -> None:
    request = ExportTraceServiceRequest()
    request.resource_spans.add()
    request.resource_spans.add().scope_spans.add()
    assert post(receiver, request.SerializeToString()).status_code == 200
    assert not export(receiver, request.SerializeToString()).HasField("partial_success")
    assert receiver.records() == []
    request.resource_spans.extend(traces().resource_spans)
    assert post(receiver, request.SerializeToString()).status_code == 200
    assert [record.body for record in receiver.records()] == [request.SerializeToString()]


@pytest.mark.otlp_rule("C19", "C22", "C24")
def test_of_our_refusals_the_retried_ones_are_those_that_may_pass() -> None:
    """Over HTTP 429 and 503, over gRPC UNAVAILABLE; an error nobody thought of is one of them."""
    refusal = Ingest(lambda record: Future()).refusal(KeyError("a bug"), "http")
    assert (refusal.http_status, refusal.code.name) == (503, "UNAVAILABLE")
    assert refusal.retry_after_seconds
    for code in type(refusal.code):
        one = RefusedError(code, "why")
        is_retried = one.http_status in (429, 502, 503, 504)
        assert is_retried == (one.retry_after_seconds is not None) == (code.name == "UNAVAILABLE")
        assert bool(one.status().details) == is_retried, "RetryInfo"


@pytest.mark.otlp_rule("C21", "C23")
@pytest.mark.fault("F18")
def test_a_disk_that_does_not_answer_is_a_retryable_refusal_within_the_sdk_s_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert COMMIT_SECONDS + 1 < SDK_DEADLINE_SECONDS
    assert RETRY_AFTER_SECONDS <= 5
    monkeypatch.setattr(exports, "COMMIT_SECONDS", 0.2)
    stuck: list[Future[LogPosition]] = []

    def append(record: LogRecord) -> Future[LogPosition]:
        stuck.append(Future())
        return stuck[-1]

    with serving(Ingest(append)) as server:
        answer = httpx.post(
            f"http://127.0.0.1:{server.http_port}/v1/traces",
            content=traces().SerializeToString(),
            headers={"content-type": PROTOBUF},
        )
        with (
            grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
            pytest.raises(grpc.RpcError) as caught,
        ):
            TraceServiceStub(channel).Export(traces(), timeout=SDK_DEADLINE_SECONDS)
    assert answer.status_code == 503
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert [future.cancelled() for future in stuck] == [True, True], "taken back"


@pytest.mark.otlp_rule("C26")
@pytest.mark.fault("F11")
def test_the_same_request_over_both_doors_at_once_is_acknowledged_each_time(
    receiver: Receiver,
) -> None:
    body = traces(3).SerializeToString()
    answers: list[bool] = []

    def send(door: Callable[[], bool]) -> None:
        answers.extend(door() for _ in range(10))

    doors = [
        lambda: post(receiver, body).status_code == 200,
        lambda: not export(receiver, body).HasField("partial_success"),
    ]
    senders = [threading.Thread(target=send, args=(door,)) for door in doors * 2]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(30)
    assert answers == [True] * 40
    assert {record.body for record in receiver.records()} == {body}


@pytest.mark.otlp_rule("C34", "C35", "C37")
def test_odd_but_legal_spans_are_kept_byte_for_byte(receiver: Receiver) -> None:
    """Empty, repeated and nested attributes; times that end first, are zero, or far away."""
    request = traces(4)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[0].attributes.add()
    spans[0].attributes.add(key="k").value.bytes_value = b"\0\xff"
    spans[0].attributes.add(key="k").value.array_value.values.add()
    spans[0].attributes.add(key="k").value.kvlist_value.values.add(key="").value.int_value = 1
    spans[1].start_time_unix_nano, spans[1].end_time_unix_nano = 2_000, 1_000
    spans[2].start_time_unix_nano = spans[2].end_time_unix_nano = 2**64 - 1
    body = request.SerializeToString()
    assert post(receiver, body).content == b""
    assert not export(receiver, body).HasField("partial_success")
    assert [record.body for record in receiver.records()] == [body, body]
    assert decode_traces(receiver.records()[0]) == request


@pytest.mark.otlp_rule("C29", "C36")
def test_fields_and_flags_that_nobody_knows_yet_are_kept(receiver: Receiver) -> None:
    request = traces()
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.flags = 0xFFFF_FFFF
    unknown = b"\xfa\x3e\x03new"  # field 1007, a text
    span.MergeFromString(unknown)
    request.resource_spans[0].MergeFromString(unknown)
    request.MergeFromString(unknown)
    body = request.SerializeToString()
    assert body.count(unknown) == 3
    assert post(receiver, body).status_code == 200
    export(receiver, body)
    assert [record.body for record in receiver.records()] == [body, body]


@pytest.mark.fault("F12")
def test_a_response_that_is_lost_costs_a_second_copy_of_the_bytes_and_no_span(
    receiver: Receiver,
) -> None:
    """The client leaves when its bytes are on disk, before it reads; it sends them again."""
    body = traces(5).SerializeToString()
    deadline = time.monotonic() + 20
    with connected(receiver) as connection:
        connection.send(head(len(body)) + body)
        while not receiver.records():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert post(receiver, body).status_code == 200
    assert [record.body for record in receiver.records()] == [body, body]


@pytest.mark.fault("F21")
def test_a_burst_of_ten_times_what_fits_is_taken_in_the_end_and_leaves_no_trace() -> None:
    taken: list[int] = []
    lock = threading.Lock()
    allowed = threading.Semaphore(4)

    def append(record: LogRecord) -> Future[LogPosition]:
        if not allowed.acquire(blocking=False):
            raise LogOverloadedError("full")
        future: Future[LogPosition] = Future()

        def commit() -> None:
            allowed.release()
            with lock:
                taken.append(len(record.body))
                future.set_result(LogPosition(1, len(taken)))

        threading.Timer(0.01, commit).start()
        return future

    acknowledged: list[float] = []

    def send(port: int, padding: int) -> None:
        body = traces(1, padding).SerializeToString()
        with httpx.Client(timeout=20) as client:
            while True:
                answer = client.post(
                    f"http://127.0.0.1:{port}/v1/traces",
                    content=body,
                    headers={"content-type": PROTOBUF},
                )
                if answer.status_code == 200:
                    acknowledged.append(time.monotonic())
                    return
                assert answer.status_code == 503
                time.sleep(0.05)

    with serving(Ingest(append)) as server:
        senders = [threading.Thread(target=send, args=(server.http_port, n)) for n in range(40)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(30)
        with contextlib.closing(httpx.Client()) as client:
            answer = client.post(
                f"http://127.0.0.1:{server.http_port}/v1/traces",
                content=traces().SerializeToString(),
                headers={"content-type": PROTOBUF},
            )
    assert answer.status_code == 200
    assert len(acknowledged) == 40
    assert len(taken) == 41
