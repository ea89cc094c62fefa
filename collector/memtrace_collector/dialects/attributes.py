"""OTLP attribute values as plain Python values. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.otlp.slices import resource_view
from memtrace_otel import semconv

MAX_NS = 2**63 - 1
_MAX_DEPTH = 16
_RESOURCES_KEPT, _LARGEST_KEPT = 256, 1 << 14


class Attributes(Protocol):
    """Attribute values by key: a dict, or :class:`SpanAttributes`."""

    def __contains__(self, name: object, /) -> bool: ...

    def get(self, name: str, /) -> object: ...


class SpanAttributes:
    """The attributes of a span as they came: a lookup decodes what it finds, and no more.

    Args:
        items: a protobuf map from key to ``AnyValue``.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Any) -> None:
        self._items = items

    def __contains__(self, name: object, /) -> bool:
        return name in self._items

    def text(self, name: str) -> str:
        """The attribute when it is a string, else the empty string."""
        value = self._items.get(name)
        found: str = "" if value is None else value.string_value
        return found

    def is_true(self, name: str) -> bool:
        """Is the attribute the boolean true?"""
        value = self._items.get(name)
        return value is not None and value.bool_value is True

    def get(self, name: str, /) -> object:
        """The attribute's value; None when there is none."""
        value = self._items.get(name)
        return None if value is None else _value(value, 0)

    def decoded(self) -> dict[str, object]:
        """All of them."""
        return {name: _value(value, 0) for name, value in self._items.items()}


class Source(NamedTuple):
    """Where a span or log record comes from: its tenant, resource and scope."""

    tenant: str
    resource: Mapping[str, object]
    scope: str = ""

    @property
    def service(self) -> str:
        return text(self.resource, semconv.SERVICE_NAME)


def resource_attributes(data: bytes) -> Mapping[str, object]:
    """The attributes of a resource in these bytes; those of the same bytes are remembered.

    Raises:
        DecodeError: they are no resource.
    """
    return _known_resource(data) if len(data) <= _LARGEST_KEPT else _resource(data)


def _resource(data: bytes) -> Mapping[str, object]:
    return SpanAttributes(resource_view(data).attributes).decoded()


_known_resource = lru_cache(maxsize=_RESOURCES_KEPT)(_resource)


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


def span_digest(data: bytes) -> str:
    """:func:`message_digest` of the span in these bytes, however they were encoded."""
    return message_digest(Span.FromString(data))
