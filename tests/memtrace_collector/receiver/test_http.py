from __future__ import annotations

import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import Future

import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from memtrace_collector.log.errors import LogOverloadedError, LogUnavailableError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.server import Listen, ListenError, ReceiverServer
from tests.memtrace_collector.receiver.messages import JSON, PROTOBUF, traces
from tests.receivers import serving


def post(url: str, body: bytes, content_type: str = PROTOBUF, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(
        url, content=body, headers={"content-type": content_type, **named}, timeout=20
    )


@pytest.mark.otlp_rule("C1", "C3", "C4", "C8", "C12", "C29", "C36")
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON, f"{JSON}; charset=utf-8"])
def test_a_request_is_acknowledged_and_kept_byte_for_byte(
    receiver, zipped: bool, content_type: str
) -> None:
    message = traces()
    body = message.SerializeToString()
    if content_type.startswith(JSON):
        span = {"traceId": "01" * 16, "spanId": "01" * 8, "unknown": 1}
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    extra = {"content_encoding": "gzip"} if zipped else {}
    sent = gzip.compress(body) if zipped else body
    answer = post(f"{receiver.http}/v1/traces", sent, content_type, **extra)
    assert answer.status_code == 200
    media_type = content_type.partition(";")[0]
    assert answer.headers["content-type"] == media_type
    assert answer.content == (b"" if media_type == PROTOBUF else b"{}")
    (record,) = receiver.records()
    assert record.body == body
    assert (record.tenant, record.signal) == ("default", "traces")
    assert record.encoding == ("protobuf" if media_type == PROTOBUF else "json")


def test_logs_are_kept_as_logs(receiver) -> None:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1)
    answer = post(f"{receiver.http}/v1/logs", request.SerializeToString())
    assert answer.status_code == 200
    assert [(record.signal, record.body) for record in receiver.records()] == [
        ("logs", request.SerializeToString())
    ]


@pytest.mark.otlp_rule("C13", "C17")
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
def test_an_empty_request_succeeds_and_keeps_nothing(receiver, content_type, path) -> None:
    for body in (b"", b"{}" if content_type == JSON else b"\x0a\x00"):
        assert post(receiver.http + path, body, content_type).status_code == 200
    assert receiver.records() == []


@pytest.mark.otlp_rule("C4", "C7", "C18", "C20")
@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/v1/traces", {"content-type": PROTOBUF}, 405),
        ("PUT", "/v1/logs", {"content-type": JSON}, 405),
        ("POST", "/v1/metrics", {"content-type": PROTOBUF}, 404),
        ("POST", "/v2/traces", {"content-type": JSON}, 404),
        ("POST", "/v1/traces", {"content-type": "text/plain"}, 415),
        ("POST", "/v1/traces", {}, 415),
        ("POST", "/v1/traces", {"content-type": PROTOBUF, "content-encoding": "zstd"}, 415),
        ("POST", "/v1/traces", {"content-type": PROTOBUF}, 400),
        ("POST", "/v1/traces", {"content-type": JSON}, 400),
        ("POST", "/v1/traces", {"content-type": JSON, "content-encoding": "gzip"}, 400),
    ],
)
def test_a_refusal_has_its_status_and_is_explained_in_the_request_s_encoding(
    receiver, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = httpx.request(method, receiver.http + path, content=b"nonsense", headers=headers)
    assert answer.status_code == status
    if headers.get("content-type") == PROTOBUF:
        assert answer.headers["content-type"] == PROTOBUF
        message = Status.FromString(answer.content).message
    else:
        assert answer.headers["content-type"] == JSON
        message = answer.json()["message"]
    assert message
    assert "retry-after" not in answer.headers
    assert receiver.records() == []


@pytest.mark.otlp_rule("C14", "C33")
def test_bad_spans_are_refused_one_by_one_with_a_count(receiver) -> None:
    request = traces(2)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans.add(trace_id=b"short", span_id=b"\1" * 8)
    answer = post(f"{receiver.http}/v1/traces", request.SerializeToString())
    assert answer.status_code == 200
    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_spans == 1
    assert "trace id" in partial.error_message
    assert len(receiver.records()) == 1


@pytest.mark.otlp_rule("C33")
def test_a_payload_on_the_wrong_path_is_refused_and_not_kept(receiver) -> None:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1)
    body = request.SerializeToString()
    answer = post(f"{receiver.http}/v1/traces", body)
    assert ExportTraceServiceResponse.FromString(answer.content).partial_success.rejected_spans == 1
    span = {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no ids"}]}]}]}
    answer = post(f"{receiver.http}/v1/traces", json.dumps(span).encode(), JSON)
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    nameless = traces()
    nameless.resource_spans[0].scope_spans[0].spans[0].ClearField("name")
    answer = post(f"{receiver.http}/v1/logs", nameless.SerializeToString())
    logs = ExportLogsServiceResponse.FromString(answer.content)
    assert logs.partial_success.rejected_log_records == 1
    answer = post(f"{receiver.http}/v1/logs", traces().SerializeToString())
    assert answer.status_code == 400, "a name where a log record has its body does not parse"
    assert receiver.records() == []


@pytest.mark.otlp_rule("C9", "C10")
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_limit_holds_before_and_after_decompression(
    start: Callable, zipped: bool, chunked: bool
) -> None:
    receiver = start(max_request_bytes=100_000)
    url = f"{receiver.http}/v1/traces"
    headers = {"content-type": PROTOBUF} | ({"content-encoding": "gzip"} if zipped else {})

    def send(body: bytes) -> httpx.Response:
        body = gzip.compress(body) if zipped else body
        content = (body[i : i + 1000] for i in range(0, len(body), 1000)) if chunked else body
        return httpx.post(url, content=content, headers=headers)

    room = 100_000 - len(traces(1).SerializeToString()) - 8
    assert send(traces(1, room).SerializeToString()).status_code == 200
    answer = send(traces(1, 101_000).SerializeToString())
    assert answer.status_code == 413
    assert Status.FromString(answer.content).code == 8
    assert len(receiver.records()) == 1


@pytest.mark.fault("F31")
@pytest.mark.otlp_rule("C9", "C10")
def test_a_gzip_bomb_is_refused_early(start: Callable) -> None:
    receiver = start(max_request_bytes=1 << 20)
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([*(squeeze.compress(bytes(1 << 20)) for _ in range(200)), squeeze.flush()])
    assert len(bomb) < 1 << 20
    url = f"{receiver.http}/v1/traces"
    assert post(url, bomb, content_encoding="gzip").status_code == 413
    many = gzip.compress(bytes(1 << 18)) * 100
    assert post(url, many, content_encoding="gzip").status_code == 413
    assert post(url, traces().SerializeToString()).status_code == 200


@pytest.mark.otlp_rule("C1")
def test_concatenated_gzip_members_are_one_body_and_cut_ones_are_refused(receiver) -> None:
    url = f"{receiver.http}/v1/traces"
    body = traces(3).SerializeToString()
    members = gzip.compress(body[:20]) + gzip.compress(body[20:])
    assert post(url, members, content_encoding="gzip").status_code == 200
    assert [record.body for record in receiver.records()] == [body]
    for cut in range(1, 40):
        answer = post(url, members[:-cut], content_encoding="gzip")
        assert answer.status_code == 400, cut
    assert len(receiver.records()) == 1


@pytest.mark.fault("F31")
@pytest.mark.otlp_rule("C20")
def test_deep_json_is_a_bad_request_and_the_server_lives_on(receiver) -> None:
    url = f"{receiver.http}/v1/traces"
    for body in (b"[" * 100_000, b'{"resourceSpans":' * 10_000, b'{"a":' * 1_000_000):
        assert post(url, body, JSON).status_code == 400
    assert post(url, traces().SerializeToString()).status_code == 200


@pytest.mark.fault("F3")
@pytest.mark.otlp_rule("C21", "C23")
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_a_log_that_refuses_means_come_back_later(content_type: str) -> None:
    def overloaded(record: LogRecord) -> Future[LogPosition]:
        raise LogOverloadedError("full")

    def failing(record: LogRecord) -> Future[LogPosition]:
        future: Future[LogPosition] = Future()
        future.set_exception(LogUnavailableError("No space left on device"))
        return future

    span = {"traceId": "01" * 16, "spanId": "01" * 8}
    body = traces().SerializeToString()
    if content_type == JSON:
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    for append in (overloaded, failing):
        with serving(Ingest(append)) as server:
            answer = post(f"http://127.0.0.1:{server.http_port}/v1/traces", body, content_type)
        assert answer.status_code == 503
        assert 0 < int(answer.headers["retry-after"]) <= 5


@pytest.mark.otlp_rule("C19", "C24")
def test_an_error_of_our_own_never_makes_the_sender_drop_its_data(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(record: LogRecord) -> Future[LogPosition]:
        raise RuntimeError("a bug")

    with serving(Ingest(broken)) as server:
        url = f"http://127.0.0.1:{server.http_port}/v1/traces"
        assert post(url, traces().SerializeToString()).status_code == 503
        with (
            grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
            pytest.raises(grpc.RpcError) as caught,
        ):
            TraceServiceStub(channel).Export(traces(), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "a bug" in caplog.text


@pytest.mark.otlp_rule("C21")
def test_too_many_bytes_in_flight_means_come_back_later(start: Callable) -> None:
    receiver = start(max_in_flight_bytes=1000)
    url = f"{receiver.http}/v1/traces"
    for _ in range(3):
        assert post(url, traces(1, 2000).SerializeToString()).status_code == 503
        assert post(url, traces(1, 500).SerializeToString()).status_code == 200


@pytest.mark.fault("F2")
def test_nothing_is_acknowledged_before_it_is_durable() -> None:
    pending: Future[LogPosition] = Future()
    asked = threading.Event()

    def append(record: LogRecord) -> Future[LogPosition]:
        asked.set()
        return pending

    server = ReceiverServer(Ingest(append), Listen(grpc_port=0, http_port=0))
    server.start()
    answers: list[httpx.Response] = []
    url = f"http://127.0.0.1:{server.http_port}/v1/traces"
    body = traces().SerializeToString()
    sender = threading.Thread(target=lambda: answers.append(post(url, body)))
    try:
        sender.start()
        assert asked.wait(10)
        sender.join(0.2)
        assert answers == []
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        pending.set_result(LogPosition(1, 0))
        sender.join(10)
        stopping.join(10)
    finally:
        server.stop()
    assert [answer.status_code for answer in answers] == [200], "stopping drains what is under way"


@pytest.mark.fault("F16")
def test_a_sender_that_leaves_in_the_middle_costs_nothing(receiver) -> None:
    head = (
        b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
        b"content-length: 1000\r\n\r\n"
    )
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", receiver.server.http_port)) as connection:
            connection.sendall(head + b"part")
    answer = post(f"{receiver.http}/v1/traces", traces().SerializeToString())
    assert answer.status_code == 200
    assert len(receiver.records()) == 1


def test_a_port_that_is_taken_is_a_clear_error_and_leaves_nothing_listening(receiver) -> None:
    server = receiver.server
    other = ReceiverServer(
        Ingest(receiver.log.append), Listen(grpc_port=server.grpc_port, http_port=0)
    )
    with pytest.raises(ListenError, match=str(server.grpc_port)):
        other.start()
    other = ReceiverServer(
        Ingest(receiver.log.append), Listen(grpc_port=0, http_port=server.http_port)
    )
    with pytest.raises(ListenError, match=str(server.http_port)):
        other.start()
