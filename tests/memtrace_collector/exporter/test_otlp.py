from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.exporter.backoff import delay_seconds
from memtrace_collector.exporter.otlp import OtlpDestination, signal_url
from memtrace_collector.exporter.responses import http_delivery, retry_info_seconds
from memtrace_collector.log.errors import LogUnavailableError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.server import Listen, ReceiverServer
from tests.receivers import Receiver, running


def traces(*, valid: bool = True) -> bytes:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, name="s")
    if not valid:
        spans.add(name="no ids")
    return request.SerializeToString()


def logs() -> bytes:
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1)
    return request.SerializeToString()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with running(tmp_path / "log") as receiver:
        yield receiver


@pytest.fixture(params=["http", "http with a path", "grpc"])
def destination(request, receiver: Receiver) -> Iterator[OtlpDestination]:
    url = {
        "http": receiver.http,
        "http with a path": f"{receiver.http}/v1/traces",
        "grpc": f"grpc://{receiver.grpc}",
    }[request.param]
    destination = OtlpDestination("test", url, {"x-token": "t"}, 10)
    yield destination
    destination.close()


def test_what_is_delivered_arrives_byte_for_byte(receiver, destination) -> None:
    assert destination.send("traces", traces()).outcome == "delivered"
    assert destination.send("logs", logs()).outcome == "delivered"
    found = [(record.signal, record.body) for record in receiver.records()]
    assert found == [("traces", traces()), ("logs", logs())]


@pytest.mark.fault("F22")
@pytest.mark.otlp_rule("C16")
def test_a_partial_success_is_refused_with_its_count(destination) -> None:
    delivery = destination.send("traces", traces(valid=False))
    assert (delivery.outcome, delivery.rejected) == ("refused", 1)
    assert "trace id" in delivery.message


@pytest.mark.fault("F22")
@pytest.mark.otlp_rule("C20")
def test_a_bad_request_is_refused_for_good(destination) -> None:
    delivery = destination.send("traces", b"nonsense")
    assert delivery.outcome == "refused"
    assert delivery.message


def test_a_json_request_stays_json_over_http_only(receiver) -> None:
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"no ids"}]}]}]}'
    over_http = OtlpDestination("http", receiver.http)
    assert over_http.send("traces", body, "json").rejected == 1
    over_http.close()
    over_grpc = OtlpDestination("grpc", f"grpc://{receiver.grpc}")
    assert over_grpc.encodings == {"protobuf"}
    assert over_grpc.send("traces", body, "json").outcome == "refused"
    over_grpc.close()


@pytest.mark.fault("F22")
@pytest.mark.otlp_rule("C25")
@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_nobody_listening_means_retry(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    destination = OtlpDestination("test", f"{scheme}://127.0.0.1:{port}", timeout=5)
    assert destination.send("traces", traces()).outcome == "retry"
    destination.close()


@pytest.mark.otlp_rule("C25")
def test_a_server_that_asks_to_come_back_is_heard() -> None:
    def full(record: LogRecord) -> Future[LogPosition]:
        raise LogUnavailableError("full")

    server = ReceiverServer(Ingest(full), Listen(grpc_port=0, http_port=0))
    server.start()
    try:
        for url in (
            f"http://127.0.0.1:{server.http_port}",
            f"grpc://127.0.0.1:{server.grpc_port}",
        ):
            destination = OtlpDestination("test", url)
            delivery = destination.send("traces", traces())
            destination.close()
            assert delivery.outcome == "retry"
            assert delivery.retry_after_s
    finally:
        server.stop(1)


class Redirecting(BaseHTTPRequestHandler):
    """Sends everybody elsewhere."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(307)
        self.send_header("location", "http://127.0.0.1:1/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.mark.fault("F36")
def test_a_redirect_is_not_followed() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        destination = OtlpDestination("test", f"http://127.0.0.1:{server.server_port}")
        delivery = destination.send("traces", traces())
        destination.close()
        server.shutdown()
        thread.join()
    assert (delivery.outcome, delivery.message) == ("refused", "HTTP 307")


@pytest.mark.fault("F22")
@pytest.mark.otlp_rule("C25")
def test_a_slow_destination_times_out_and_is_retried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        for scheme in ("http", "grpc"):
            url = f"{scheme}://127.0.0.1:{deaf.getsockname()[1]}"
            destination = OtlpDestination("test", url, timeout=0.2)
            assert destination.send("traces", traces()).outcome == "retry"
            destination.close()


@pytest.mark.otlp_rule("C19")
@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, "delivered"), (202, "delivered"), (301, "refused"), (400, "refused"),
        (401, "refused"), (404, "refused"), (413, "refused"), (429, "retry"), (500, "refused"),
        (501, "refused"), (502, "retry"), (503, "retry"), (504, "retry"),
    ],
)  # fmt: skip
def test_only_the_statuses_of_the_specification_are_retried(status: int, outcome: str) -> None:
    assert http_delivery("traces", status, "text/plain", b"why").outcome == outcome


@pytest.mark.parametrize(("status", "expected"), [(404, True), (405, True), (400, False)])
def test_what_is_not_offered_is_told_apart_from_what_is_wrong(status: int, expected: bool) -> None:
    assert http_delivery("logs", status, "text/plain", b"why").is_not_offered is expected


@pytest.mark.otlp_rule("C21", "C25")
@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0), ("0", 0.0), ("-1", None), ("soon", None), (None, None), ("inf", None),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0), ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    delivery = http_delivery("traces", 503, "", b"", value, clock=lambda: 10.0)
    assert delivery.retry_after_s == seconds


def test_a_json_partial_success_is_read_and_a_strange_body_is_a_success() -> None:
    body = b'{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"no"}}'
    assert http_delivery("logs", 200, "application/json", body).rejected == 3
    for strange in (b"", b"[]", b"{}", b"<html>", b"[" * 5000, b'{"partialSuccess":7}'):
        assert http_delivery("logs", 200, "application/json", strange).outcome == "delivered"
    assert http_delivery("traces", 200, "application/x-protobuf", b"\xff").outcome == "delivered"


@pytest.mark.otlp_rule("C15")
def test_a_warning_is_a_delivery_with_a_message() -> None:
    for media_type, body in {
        "application/json": b'{"partialSuccess":{"errorMessage":"old SDK"}}',
        "application/x-protobuf": b"\x0a\x09\x12\x07old SDK",
    }.items():
        delivery = http_delivery("traces", 200, media_type, body)
        assert (delivery.outcome, delivery.message) == ("delivered", "warning: old SDK")


@pytest.mark.otlp_rule("C21", "C25")
def test_retry_info_is_found_among_the_details() -> None:
    status = Status()
    status.details.add().Pack(Duration(seconds=9))
    status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000)))
    assert retry_info_seconds(status.SerializeToString()) == 1.5
    assert retry_info_seconds(Status().SerializeToString()) is None
    assert retry_info_seconds(b"\xff") is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:1", "http://h:1/v1/logs"),
        ("http://h:1/", "http://h:1/v1/logs"),
        ("https://h/otlp/", "https://h/otlp/v1/logs"),
        ("https://h/otlp/v1/traces", "https://h/otlp/v1/logs"),
        ("https://h/v1/logs?key=1", "https://h/v1/logs?key=1"),
    ],
)
def test_a_signal_s_path_is_appended_once(url: str, expected: str) -> None:
    assert signal_url(url, "logs") == expected


@pytest.mark.parametrize("url", ["", "h:4317", "ftp://h", "grpc://h", "http://", "//h:1"])
def test_a_wrong_url_is_a_clear_error(url: str) -> None:
    with pytest.raises(ValueError, match="not an OTLP destination"):
        OtlpDestination("test", url)


@pytest.mark.otlp_rule("C25")
def test_back_off_doubles_is_bounded_and_spreads() -> None:
    delays = [delay_seconds(n, first=1, longest=60, key="a") for n in range(1, 200)]
    assert all(0.75 * min(60, 2.0**n) <= delay <= 60 for n, delay in enumerate(delays))
    keys = {delay_seconds(3, first=1, longest=60, key=str(n)) for n in range(50)}
    assert len(keys) > 40


@pytest.mark.otlp_rule("C22")
def test_grpc_codes_follow_the_specification() -> None:
    retryable = {
        "CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS",
    }  # fmt: skip
    asked: list[grpc.StatusCode] = []

    def export(body: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(asked[-1], "because")
        raise AssertionError

    name = "opentelemetry.proto.collector.trace.v1.TraceService"
    handler = grpc.method_handlers_generic_handler(
        name, {"Export": grpc.unary_unary_rpc_method_handler(export)}
    )
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, handlers=[handler])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        destination = OtlpDestination("test", f"grpc://127.0.0.1:{port}")
        for code in grpc.StatusCode:
            if code is grpc.StatusCode.OK:
                continue
            asked.append(code)
            expected = "retry" if code.name in retryable else "refused"
            assert destination.send("traces", traces()).outcome == expected, code
        destination.close()
        server.stop(None).wait()
