"""What is fuzzed: each target takes any bytes and raises nothing but what its reader promises.

A target also holds a relation between two readers where there are two: what the door lets in, the
projection must be able to read.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.dialects import packed_json
from memtrace_collector.log.format import Encoding, LogRecord, Signal
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.receiver.decode import InvalidRequestError, decode
from memtrace_collector.receiver.inflate import Coding, Inflater, coding_of
from memtrace_collector.receiver.refusal import RefusedError
from memtrace_collector.receiver.validate import check, keep_valid
from memtrace_otel import semconv

LIMIT = 1 << 16
_READER = RecordReader()
_SIGNALS: tuple[Signal, Signal] = ("traces", "logs")


def protobuf(data: bytes) -> None:
    """A request in protobuf, of either signal."""
    _request("protobuf", data)


def json_request(data: bytes) -> None:
    """A request in JSON, of either signal."""
    _request("json", data)


def _request(encoding: Encoding, data: bytes) -> None:
    signal, body = _SIGNALS[data[:1] > b"\x7f"], data[1:]
    with contextlib.suppress(InvalidRequestError):
        request = decode(signal, encoding, body)
        checked = check(signal, request)
        if checked.accepted:
            _READER.facts(LogRecord("default", 0, signal, encoding, body))
        keep_valid(signal, request)
        left = check(signal, request)
        if (left.items, left.rejected) != (checked.accepted, 0):
            raise AssertionError(f"{checked} became {left}")


def gzip_stream(data: bytes) -> None:
    """A compressed body that comes in chunks, their sizes taken from its first bytes."""
    sizes, body = data[:4], data[4:]
    coding = coding_of(body) or Coding.GZIP
    with contextlib.suppress(RefusedError):
        inflater = Inflater(LIMIT, coding)
        size = at = 0
        for step in sizes:
            size += sum(map(len, inflater.feed(body[at : at + step])))
            at += step
        size += sum(map(len, inflater.feed(body[at:])))
        size += sum(map(len, inflater.finish()))
        if size > LIMIT:
            raise AssertionError(f"{size} bytes came out")


def packed(data: bytes) -> None:
    """JSON in an attribute: never an error, whatever is left of it."""
    text = data.decode("utf-8", "surrogateescape")
    found = packed_json.read({"a": text}, "a")
    if found is None or not isinstance(found.data, dict):
        raise AssertionError(found)
    split = packed_json.read({"a.1": text[: len(text) // 2], "a.2": text[len(text) // 2 :]}, "a")
    if split != found:
        raise AssertionError((split, found))
    json.dumps(found.data, ensure_ascii=False).encode()


def lineage(data: bytes) -> None:
    """The lineage of an otherwise good memory span: at most the lineage is lost."""
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, name="search_memory")
    )
    span.attributes.add(key=semconv.MEMTRACE_SCHEMA_VERSION).value.int_value = 1
    for key, value in {
        semconv.MEMTRACE_GRAPH_ID: "user:fuzz",
        semconv.MEMTRACE_STEP: "retrieve",
        semconv.MEMTRACE_LINEAGE: data.decode("utf-8", "replace"),
    }.items():
        span.attributes.add(key=key).value.string_value = value
    record = LogRecord("default", 0, "traces", "protobuf", request.SerializeToString())
    (facts,) = _READER.facts(record)
    if facts.operation is None:
        raise AssertionError("the operation was lost with its lineage")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "protobuf": protobuf,
    "json": json_request,
    "gzip": gzip_stream,
    "packed": packed,
    "lineage": lineage,
}
