"""A small OTLP/HTTP receiver on loopback, for what separate programs export."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

ReceivedSpan = dict[str, Any]
"""name, trace_id, span_id, parent_span_id (hex), resource and attributes (plain dicts)."""


class OTLPReceiver:
    """The server, as a context manager. ``endpoint`` is the base URL of an exporter."""

    def __init__(self) -> None:
        self._spans: list[ReceivedSpan] = []
        self._server = _Server(self._spans)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def spans(self) -> list[ReceivedSpan]:
        """What has arrived so far."""
        return list(self._spans)

    def wait(self, until: Callable[[list[ReceivedSpan]], bool], seconds: float = 30) -> None:
        """Return when ``until`` holds for what arrived; fail after ``seconds``."""
        deadline = time.monotonic() + seconds
        while not until(self.spans()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"only {[span['name'] for span in self.spans()]} arrived")
            time.sleep(0.02)

    def __enter__(self) -> OTLPReceiver:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, spans: list[ReceivedSpan]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans = spans


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path == "/v1/traces":
            self.server.spans.extend(decode(body))
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: pytest shows what failed."""


def decode(body: bytes) -> list[ReceivedSpan]:
    """The spans of one export request."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        {
            "name": span.name,
            "trace_id": span.trace_id.hex(),
            "span_id": span.span_id.hex(),
            "parent_span_id": span.parent_span_id.hex(),
            "resource": _plain(resource.resource.attributes),
            "attributes": _plain(span.attributes),
        }
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _plain(attributes: Any) -> dict[str, Any]:
    return {item.key: _value(item.value) for item in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None
