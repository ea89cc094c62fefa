"""Operations, values and flags as compact bytes: msgpack arrays, field order fixed by a version."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import typing
from typing import Any, NamedTuple

import msgspec

from memtrace_collector.graph.facts import Flag, Operation, Value
from memtrace_otel import variables

_KEY_FIELDS = frozenset(("tenant", "graph_id", "trace_id", "span_id"))
_FIELDS = tuple(
    field.name for field in dataclasses.fields(Operation) if field.name not in _KEY_FIELDS
)
_TYPES = typing.get_type_hints(Operation)
_KEYS_KEPT = 1 << 16
_encoder = msgspec.msgpack.Encoder()
_operation_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
    tuple[tuple(_TYPES[name] for name in _FIELDS)]  # type: ignore[misc]  # built from the class
)
_content_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(str | list[object])
_flag_decoder = msgspec.msgpack.Decoder(Flag)


class Place(NamedTuple):
    """The key fields of an operation, which rows hold as columns."""

    tenant: str
    graph_id: str
    trace_id: str
    span_id: str


def operation_body(operation: Operation) -> bytes:
    """Everything but the key fields."""
    return _encoder.encode([getattr(operation, name) for name in _FIELDS])


def operation(body: bytes, place: Place) -> Operation:
    """The inverse of :func:`operation_body`."""
    fields = dict(zip(_FIELDS, _operation_decoder.decode(body)))
    return Operation(**place._asdict(), **fields)


def value_content(value: Value) -> bytes:
    return _encoder.encode(value.content)


def content(body: bytes) -> str | list[object]:
    decoded: str | list[object] = _content_decoder.decode(body)
    return decoded


def flag_body(flag: Flag) -> bytes:
    return _encoder.encode(flag)


def flag(body: bytes) -> Flag:
    return _flag_decoder.decode(body)


@functools.lru_cache(maxsize=_KEYS_KEPT)
def name_key(name: str) -> int:
    """64-bit digest of a name, signed as SQLite's integers are."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def met_key(record: str) -> int:
    """Another :func:`name_key` of a record, under which stand the uses that merely met it."""
    return name_key(f"met {record}")


def record_key(ref: str) -> int:
    """:func:`name_key` of a reference's record."""
    return name_key(variables.record_of(ref))


def version_key(ref: str) -> int:
    """:func:`name_key` of a reference's version."""
    return name_key(variables.version_of(ref))
