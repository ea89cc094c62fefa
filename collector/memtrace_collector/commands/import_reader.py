"""Files -> OTLP export requests, in pieces of bounded size; what cannot be read is named.

Read are: OTLP/JSON (one request, or one per line, as the file exporter of the OpenTelemetry
Collector writes it), OTLP protobuf (one request, or requests behind four-byte big-endian
lengths), and the JSON of smartcomment and MemTraceBench.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.dialects import smartcomment
from memtrace_collector.log.format import Encoding, Signal
from memtrace_collector.receiver.decode import InvalidRequestError, decode
from memtrace_collector.receiver.validate import check, keep_valid

PIECE_BYTES = 4 << 20
"""A request is cut into pieces of about this size; one larger span stands alone."""

_LENGTH = struct.Struct(">I")
_SIGNALS: tuple[tuple[str, Signal], ...] = (("resourceSpans", "traces"), ("resourceLogs", "logs"))


class Piece(NamedTuple):
    """An export request as protobuf, and how many spans or log records it holds."""

    signal: Signal
    body: bytes
    items: int


class Problem(NamedTuple):
    """What could not be read: where (file, and line or message) and why."""

    where: str
    reason: str


def read_file(path: Path) -> Iterator[Piece | Problem]:
    """Everything in the file, in its order; reading goes on behind a problem where it can."""
    try:
        if _starts_as_json(path):
            yield from _read_json(path)
        else:
            yield from _read_protobuf(path)
    except OSError as error:
        yield Problem(str(path), error.strerror or str(error))


def _starts_as_json(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _read_json(path: Path) -> Iterator[Piece | Problem]:
    with path.open("rb") as file:
        first = file.readline()
    if _is_json(first):
        yield from _read_lines(path)
        return
    yield from _read_document(str(path), path.read_bytes())


def _read_lines(path: Path) -> Iterator[Piece | Problem]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield from _read_document(f"{path}, line {number}", line)


def _read_document(where: str, body: bytes) -> Iterator[Piece | Problem]:
    try:
        document = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        yield Problem(where, f"not JSON: {error}")
        return
    signals = [signal for field, signal in _SIGNALS if _has(document, field)]
    for signal in signals:
        yield from _read_request(where, signal, "json", body.removeprefix(b"\xef\xbb\xbf"))
    if not signals:
        yield from _read_smartcomment(where, document)


def _has(document: object, field: str) -> bool:
    return isinstance(document, dict) and field in document


def _read_smartcomment(where: str, document: Any) -> Iterator[Piece | Problem]:
    try:
        request = smartcomment.to_request(document)
    except smartcomment.NotSmartcommentError as error:
        expected = "neither OTLP/JSON (resourceSpans, resourceLogs) nor smartcomment"
        yield Problem(where, f"{expected}: {error}")
        return
    yield from _pieces("traces", request)


def _read_protobuf(path: Path) -> Iterator[Piece | Problem]:
    body = path.read_bytes()
    found = _read_message(str(path), body)
    messages = None if _is_read(found) else _delimited(body)
    if messages is None:
        yield from found
        return
    for number, message in enumerate(messages, 1):
        yield from _read_message(f"{path}, message {number}", message)


def _read_message(where: str, body: bytes) -> list[Piece | Problem]:
    """A request of either signal; when it is neither, what it lacks as traces."""
    traces = list(_read_request(where, "traces", "protobuf", body))
    if _is_read(traces):
        return traces
    logs = list(_read_request(where, "logs", "protobuf", body))
    return logs if _is_read(logs) else traces


def _is_read(found: list[Piece | Problem]) -> bool:
    return any(isinstance(item, Piece) for item in found)


def _delimited(body: bytes) -> list[bytes] | None:
    """The messages behind four-byte lengths; None when the lengths do not add up."""
    messages, offset = [], 0
    while offset + _LENGTH.size <= len(body):
        (size,) = _LENGTH.unpack_from(body, offset)
        offset += _LENGTH.size
        messages.append(body[offset : offset + size])
        offset += size
    return messages if messages and offset == len(body) else None


def _read_request(
    where: str, signal: Signal, encoding: Encoding, body: bytes
) -> Iterator[Piece | Problem]:
    try:
        request = decode(signal, encoding, body)
    except InvalidRequestError as error:
        yield Problem(where, str(error))
        return
    checked = check(signal, request)
    if not checked.items:
        yield Problem(where, f"holds no {signal}")
        return
    if checked.rejected:
        yield Problem(where, f"{checked.rejected} of {checked.items} {checked.reason}")
        keep_valid(signal, request)
    if checked.accepted:
        yield from _pieces(signal, request)


def _pieces(signal: Signal, request: Any) -> Iterator[Piece]:
    """The request, cut between its spans where it is large."""
    if request.ByteSize() <= PIECE_BYTES:
        yield Piece(signal, request.SerializeToString(), check(signal, request).items)
        return
    for part in _split(signal, request):
        yield Piece(signal, part.SerializeToString(), check(signal, part).items)


def _split(signal: Signal, request: Any) -> Iterator[Any]:
    for resource in request.resource_spans if signal == "traces" else request.resource_logs:
        scopes = resource.scope_spans if signal == "traces" else resource.scope_logs
        for scope in scopes:
            yield from _split_scope(signal, resource, scope)


def _split_scope(signal: Signal, resource: Any, scope: Any) -> Iterator[Any]:
    items = scope.spans if signal == "traces" else scope.log_records
    part, room = _part(signal, resource, scope), PIECE_BYTES
    target = _items(signal, part)
    for item in items:
        size = item.ByteSize()
        if target and size > room:
            yield part
            part, room = _part(signal, resource, scope), PIECE_BYTES
            target = _items(signal, part)
        target.append(item)
        room -= size
    if target:
        yield part


def _part(signal: Signal, resource: Any, scope: Any) -> Any:
    """A request with the same resource and scope and no items yet."""
    if signal == "traces":
        traces = ExportTraceServiceRequest()
        spans = traces.resource_spans.add(
            resource=resource.resource, schema_url=resource.schema_url
        )
        spans.scope_spans.add(scope=scope.scope, schema_url=scope.schema_url)
        return traces
    logs = ExportLogsServiceRequest()
    records = logs.resource_logs.add(resource=resource.resource, schema_url=resource.schema_url)
    records.scope_logs.add(scope=scope.scope, schema_url=scope.schema_url)
    return logs


def _items(signal: Signal, part: Any) -> Any:
    if signal == "traces":
        return part.resource_spans[0].scope_spans[0].spans
    return part.resource_logs[0].scope_logs[0].log_records


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return True
