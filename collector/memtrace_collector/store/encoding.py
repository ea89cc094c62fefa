"""Operations, values and flags as compact bytes: msgpack, arrays in a fixed order of fields."""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from memtrace_collector.graph.facts import Flag, Operation, Value

FORM = b"\x01"
"""First byte of an operation's body. Fields that are added at the end need no other form: a
shorter array is read with their defaults."""
_ARRAY = b"\xdc"
"""msgpack's mark of an array whose length takes the next two bytes."""
_LENGTH = slice(1, 3)
_HEAD_BYTES = 3
_TRACE_BYTES, _TRACE_TEXT = 16, b"\xd9\x20"
_SPAN_BYTES, _SPAN_TEXT = 8, b"\xb0"
"""msgpack's marks of a text of twice as many characters."""
_encoder = msgspec.msgpack.Encoder()
_operation_decoder = msgspec.msgpack.Decoder(Operation)
_content_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(str | list[object])
_flag_decoder = msgspec.msgpack.Decoder(Flag)


class Place(NamedTuple):
    """The identity of an operation, which rows hold as columns."""

    tenant: str
    graph_id: str
    trace_id: str
    span_id: str


def operation_body(operation: Operation) -> bytes:
    """Everything but graph, trace and span, which are the first fields."""
    keys = _keys(operation.graph_id, operation.trace_id, operation.span_id)
    encoded = _encoder.encode(operation)
    return FORM + encoded[_LENGTH] + encoded[_HEAD_BYTES + len(keys) :]


def operation(body: bytes, place: Place) -> Operation:
    """The inverse of :func:`operation_body`.

    Raises:
        ValueError: the body is damaged, or in a form of another release.
    """
    trace, span = bytes.fromhex(place.trace_id), bytes.fromhex(place.span_id)
    return decoder(place.graph_id)(trace, span, body)


def decoder(graph_id: str) -> Callable[[bytes, bytes, bytes], Operation]:
    """:func:`operation` for many of one graph, by trace, span and body."""
    graph = _encoder.encode(graph_id)

    def decode(trace: bytes, span: bytes, body: bytes) -> Operation:
        if body[:1] != FORM:
            raise ValueError(
                f"an operation in form {body[:1].hex()}; this release reads {FORM.hex()}"
            )
        head = (_ARRAY, body[_LENGTH], graph, _trace_text(trace), _span_text(span))
        return _operation_decoder.decode(b"".join((*head, body[_HEAD_BYTES:])))

    return decode


def _trace_text(trace: bytes) -> bytes:
    """As the encoder has it, made in a quarter of the time."""
    if len(trace) != _TRACE_BYTES:
        return _encoder.encode(trace.hex())
    return _TRACE_TEXT + hexlify(trace)


def _span_text(span: bytes) -> bytes:
    if len(span) != _SPAN_BYTES:
        return _encoder.encode(span.hex())
    return _SPAN_TEXT + hexlify(span)


def _keys(graph_id: str, trace_id: str, span_id: str) -> bytes:
    return _encoder.encode((graph_id, trace_id, span_id))[1:]


def value_content(value: Value) -> bytes:
    return _encoder.encode(value.content)


def content(body: bytes) -> str | list[object]:
    decoded: str | list[object] = _content_decoder.decode(body)
    return decoded


def flag_body(flag: Flag) -> bytes:
    return _encoder.encode(flag)


def flag(body: bytes) -> Flag:
    return _flag_decoder.decode(body)
