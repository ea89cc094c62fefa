"""What the tests of the receiver send, and raw connections to send it by."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.receivers import Receiver

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def traces(spans: int = 1, padding: int = 0) -> ExportTraceServiceRequest:
    """Valid spans, each with ``padding`` characters in its name."""
    request = ExportTraceServiceRequest()
    into = request.resource_spans.add().scope_spans.add().spans
    for number in range(1, spans + 1):
        into.add(trace_id=b"\1" * 16, span_id=number.to_bytes(8, "big"), name="s" + "x" * padding)
    return request


def traces_json(**fields: object) -> bytes:
    """One span with ``fields``, as OTLP/JSON."""
    span = {"traceId": "01" * 16, "spanId": "01" * 8, "name": "s", **fields}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def head(body_bytes: int | None, content_type: str = PROTOBUF, path: str = "/v1/traces") -> bytes:
    """The head of a POST; without a length the body comes in chunks."""
    framing = (
        "transfer-encoding: chunked" if body_bytes is None else f"content-length: {body_bytes}"
    )
    return (
        f"POST {path} HTTP/1.1\r\nhost: here\r\ncontent-type: {content_type}\r\n{framing}\r\n\r\n"
    ).encode()


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """A client's end of a connection, byte by byte."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._rest = b""

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def answer(self) -> Answer | None:
        """The next response; None when the server has closed the connection instead."""
        while b"\r\n\r\n" not in self._rest:
            if not self._more():
                return None
        text, _, self._rest = self._rest.partition(b"\r\n\r\n")
        status, *lines = text.decode().split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        size = int(headers.get("content-length", 0))
        while len(self._rest) < size:
            assert self._more(), "the connection closed in the middle of a response"
        body, self._rest = self._rest[:size], self._rest[size:]
        return Answer(int(status.split()[1]), headers, body)

    def is_closed(self) -> bool:
        """Wait until the server closes the connection."""
        return not self._more()

    def _more(self) -> bool:
        try:
            data = self._socket.recv(65_536)
        except ConnectionError:
            return False
        self._rest += data
        return bool(data)


@contextmanager
def connected(receiver: Receiver, port: int | None = None) -> Iterator[Connection]:
    """A connection to the HTTP port, or to ``port``; an operation on it takes at most 20 s."""
    address = ("127.0.0.1", port or receiver.server.http_port)
    with socket.create_connection(address, timeout=20) as connection:
        yield Connection(connection)
