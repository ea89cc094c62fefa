"""Bytes of an export request -> its protobuf message. Pure.

JSON is read here and not by ``protobuf.json_format``: OTLP/JSON has hexadecimal ids where
protobuf's own mapping has base64, and hostile nesting must end in a clear refusal.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.log.format import Encoding, LogRecord, Signal
from memtrace_collector.receiver.validate import keep_valid

MAX_DEPTH = 100
"""Nested messages; protobuf's own parser stops at the same depth."""

BAD_ID = b"\xff"
"""Stands for an id that is not hexadecimal: of no valid length, so it is refused where the
validity of ids is judged, and costs its span rather than the request."""

_REQUESTS: dict[Signal, Callable[[], Any]] = {
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
}
_HEX_FIELDS = frozenset(("trace_id", "span_id", "parent_span_id"))
_SURROGATE = re.compile("[\ud800-\udfff]")


class InvalidRequestError(ValueError):
    """The bytes are not the request that they should be."""


def decode(signal: Signal, encoding: Encoding, body: bytes) -> Any:
    """The request message, valid or not in its parts.

    Raises:
        InvalidRequestError: malformed, too deeply nested, or values of wrong types.
    """
    request = _REQUESTS[signal]()
    _parse(body, encoding, request)
    return request


def decode_traces(record: LogRecord) -> ExportTraceServiceRequest:
    """The spans of a log record that were accepted: those with valid ids.

    Raises:
        InvalidRequestError: as :func:`decode`.
    """
    request = ExportTraceServiceRequest()
    _parse(record.body, record.encoding, request)
    keep_valid("traces", request)
    return request


def decode_logs(record: LogRecord) -> ExportLogsServiceRequest:
    """The log records of a log record that were accepted.

    Raises:
        InvalidRequestError: as :func:`decode`.
    """
    request = ExportLogsServiceRequest()
    _parse(record.body, record.encoding, request)
    keep_valid("logs", request)
    return request


def _parse(body: bytes, encoding: Encoding, request: Message) -> None:
    """Fill ``request``; an empty body is an empty request in either encoding."""
    if body and encoding == "protobuf":
        _parse_protobuf(body, request)
    elif body:
        _parse_json(body, request)


def _parse_protobuf(body: bytes, request: Message) -> None:
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise InvalidRequestError(f"the body is not a protobuf export request: {error}") from error


def _parse_json(body: bytes, request: Message) -> None:
    try:
        document = json.loads(body.decode())
        _fill(request, document, 1)
    except RecursionError as error:
        raise InvalidRequestError("the JSON is nested too deeply") from error
    except (ValueError, TypeError) as error:
        raise InvalidRequestError(f"the body is not a JSON export request: {error}") from error


def _fill(message: Message, document: object, depth: int) -> None:
    """Set the fields of ``message`` from a JSON object; unknown ones are ignored."""
    if depth > MAX_DEPTH:
        raise InvalidRequestError(f"nested more than {MAX_DEPTH} levels deep")
    if not isinstance(document, Mapping):
        raise InvalidRequestError(f"{message.DESCRIPTOR.name}: expected an object")
    fields = _fields(message.DESCRIPTOR)
    for name, value in document.items():
        field = fields.get(name)
        if field is None or value is None:
            continue
        if field.message_type is None:
            _set_scalar(message, field, value)
        elif field.is_repeated:
            for item in _items(field, value):
                _fill(getattr(message, field.name).add(), item, depth + 1)
        else:
            child = getattr(message, field.name)
            child.SetInParent()
            _fill(child, value, depth + 1)


def _set_scalar(message: Message, field: FieldDescriptor, value: object) -> None:
    convert = _CONVERTERS[field.cpp_type]
    if field.type == FieldDescriptor.TYPE_BYTES:
        convert = _hexadecimal if field.name in _HEX_FIELDS else _base64
    if field.is_repeated:
        items = [convert(item) for item in _items(field, value)]
        getattr(message, field.name).extend(items)
    else:
        setattr(message, field.name, convert(value))


@functools.lru_cache(maxsize=64)
def _fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    """Fields by lowerCamelCase name and, tolerated, by the name in the schema."""
    names = {field.name: field for field in descriptor.fields}
    return names | {field.json_name: field for field in descriptor.fields}


def _items(field: FieldDescriptor, value: object) -> list[object]:
    if not isinstance(value, list):
        raise InvalidRequestError(f"{field.json_name}: expected an array")
    return value


def _hexadecimal(value: object) -> bytes:
    try:
        return binascii.unhexlify(_text(value))
    except ValueError:
        return BAD_ID


def _base64(value: object) -> bytes:
    text = _text(value).replace("-", "+").replace("_", "/")
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidRequestError(f"expected a string, got {type(value).__name__}")
    return value if value.isascii() else _SURROGATE.sub("\ufffd", value)


def _integer(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise InvalidRequestError(f"expected an integer, got {type(value).__name__}")
    return int(value)


def _enum(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError("enum values are integers in OTLP/JSON")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidRequestError(f"expected a number, got {type(value).__name__}")
    return float(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequestError(f"expected true or false, got {type(value).__name__}")
    return value


_CONVERTERS: dict[int, Callable[[object], object]] = {
    FieldDescriptor.CPPTYPE_INT32: _integer,
    FieldDescriptor.CPPTYPE_INT64: _integer,
    FieldDescriptor.CPPTYPE_UINT32: _integer,
    FieldDescriptor.CPPTYPE_UINT64: _integer,
    FieldDescriptor.CPPTYPE_DOUBLE: _number,
    FieldDescriptor.CPPTYPE_FLOAT: _number,
    FieldDescriptor.CPPTYPE_BOOL: _boolean,
    FieldDescriptor.CPPTYPE_ENUM: _enum,
    FieldDescriptor.CPPTYPE_STRING: _text,
}
