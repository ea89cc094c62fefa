"""OTLP attribute values as plain Python values. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from memtrace_otel import semconv

Attributes = Mapping[str, object]
MAX_NS = 2**63 - 1
_MAX_DEPTH = 16


class Source(NamedTuple):
    """Where a span or log record comes from: its tenant, resource and scope."""

    tenant: str
    resource: Attributes
    scope: str = ""

    @property
    def service(self) -> str:
        return text(self.resource, semconv.SERVICE_NAME)


def decode(attributes: Iterable[KeyValue]) -> dict[str, object]:
    """Attributes by key; a repeated key keeps its last value."""
    return {item.key: _value(item.value, 0) for item in attributes}


def _value(value: AnyValue, depth: int) -> object:
    kind = value.WhichOneof("value")
    if kind is None or depth > _MAX_DEPTH:
        return None
    if kind == "array_value":
        return [_value(item, depth + 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _value(item.value, depth + 1) for item in value.kvlist_value.values}
    scalar: object = getattr(value, kind)
    return scalar


def text(attributes: Attributes, name: str) -> str:
    """The attribute when it is a string, else the empty string."""
    value = attributes.get(name)
    return value if isinstance(value, str) else ""


def optional_text(attributes: Attributes, name: str) -> str | None:
    """The attribute when it is a string, else None."""
    value = attributes.get(name)
    return value if isinstance(value, str) else None


def texts(attributes: Attributes, name: str) -> tuple[str, ...]:
    """The strings of an array attribute; a single string counts as an array of one."""
    value = attributes.get(name)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    return ()


def nanoseconds(value: int) -> int:
    """An OTLP time, kept inside a signed 64-bit integer."""
    return min(value, MAX_NS)


def message_digest(message: Any) -> str:
    """SHA-256 of a protobuf message's deterministic bytes, in hex."""
    return hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
