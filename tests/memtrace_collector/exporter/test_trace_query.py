"""The query APIs of Jaeger and Tempo are read, and whatever else they say is no answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

from memtrace_collector.exporter import trace_query
from memtrace_collector.exporter.trace_query import Api, TraceQuery
from tests.ports import free_port

TRACE, SPAN, OTHER = "ab" * 16, "0f" * 8, "1e" * 8


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    status, body = 200, b""
    asked: list[tuple[str, str, str]]


class _Answering(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        named = self.headers["accept"], self.headers.get("x-scope-orgid", "")
        self.server.asked.append((self.path, *named))
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def _answering(status: int, body: bytes) -> Iterator[tuple[_Server, str]]:
    server = _Server(("127.0.0.1", 0), _Answering)
    server.status, server.body, server.asked = status, body, []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _ask(api: Api, status: int, body: bytes) -> trace_query.Found:
    with _answering(status, body) as (_, url):
        query = TraceQuery(api, url)
        found = query.spans_of(TRACE)
        query.close()
    return found


def _jaeger(*span_ids: str) -> bytes:
    spans = [{"traceId": TRACE, "spanId": span_id} for span_id in span_ids]
    return json.dumps({"result": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}}).encode()


def _tempo(*span_ids: str) -> bytes:
    spans = [Span(span_id=bytes.fromhex(span_id)) for span_id in span_ids]
    scoped = ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])
    return TracesData(resource_spans=[scoped]).SerializeToString()


@pytest.mark.parametrize(("api", "body"), [("jaeger", _jaeger), ("tempo", _tempo)])
def test_the_spans_of_a_trace_are_read(api: Api, body: Any) -> None:
    assert _ask(api, 200, body(SPAN, OTHER)).span_ids == {SPAN, OTHER}


def test_a_streamed_answer_is_read_to_its_end() -> None:
    assert _ask("jaeger", 200, _jaeger(SPAN) + b"\n" + _jaeger(OTHER)).span_ids == {SPAN, OTHER}


@pytest.mark.parametrize("api", ["jaeger", "tempo"])
def test_a_trace_that_is_not_there_has_no_spans(api: Api) -> None:
    assert _ask(api, 404, b'{"error":{"httpCode":404}}').span_ids == frozenset()


@pytest.mark.parametrize(
    ("api", "status", "body"),
    [
        ("jaeger", 500, b"{}"),
        ("jaeger", 302, b""),
        ("jaeger", 200, b"<!doctype html>"),
        ("jaeger", 200, b"[]"),
        ("jaeger", 200, b'{"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}}'),
        ("jaeger", 200, b"\xff"),
        ("jaeger", 200, b"[" * 100_000),
        ("tempo", 429, b""),
        ("tempo", 200, b"\xff\xff"),
    ],
)
def test_anything_else_is_no_answer(api: Api, status: int, body: bytes) -> None:
    found = _ask(api, status, body)
    assert found.span_ids is None and found.message


def test_an_endless_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_query, "MAX_ANSWER_BYTES", 100)
    found = _ask("jaeger", 200, _jaeger(*[SPAN] * 20))
    assert found.span_ids is None and "larger than 100 bytes" in found.message


def test_nobody_there_is_no_answer() -> None:
    query = TraceQuery("jaeger", f"http://127.0.0.1:{free_port()}")
    assert query.spans_of(TRACE).span_ids is None
    query.close()


@pytest.mark.parametrize(
    ("api", "path", "accepts"),
    [
        ("jaeger", f"/base/api/v3/traces/{TRACE}", "application/json"),
        ("tempo", f"/base/api/traces/{TRACE}", "application/protobuf"),
    ],
)
def test_it_is_asked_below_its_url_with_the_destinations_headers(
    api: Api, path: str, accepts: str
) -> None:
    with _answering(404, b"") as (server, url):
        query = TraceQuery(api, f"{url}/base/", {"X-Scope-OrgID": "acme"})
        query.spans_of(TRACE)
        query.close()
    assert server.asked == [(path, accepts, "acme")]
