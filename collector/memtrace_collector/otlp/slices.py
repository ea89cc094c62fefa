"""A trace export request cut into spans that stay bytes.

A second description of OTLP's wire format, in which resources, scopes and spans are fields of
type ``bytes``: parsing only slices, what nobody touches is serialised again as it came, and
unknown fields are kept. A span that concerns us is decoded from its slice into a
:data:`SpanView`, whose attributes are a map, so that a lookup costs no walk; of a repeated key
the last value counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.common.v1 import common_pb2

SpanView: TypeAlias = Any
"""A message with the fields of ``opentelemetry.proto.trace.v1.Span`` that are read here."""
SlicedRequest: TypeAlias = Any
"""A message with the fields of ``ExportTraceServiceRequest``."""

_PACKAGE = "memtrace.slices"
_TYPES = {
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "string": FieldDescriptorProto.TYPE_STRING,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
}
_MAP = "map<string, AnyValue>"
_SCHEMA: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Request": {"resource_spans": (1, "repeated ResourceSpans")},
    "ResourceSpans": {"resource": (1, "repeated bytes"), "scope_spans": (2, "repeated ScopeSpans")},
    "ScopeSpans": {"scope": (1, "repeated bytes"), "spans": (2, "repeated bytes")},
    "Resource": {"attributes": (1, _MAP)},
    "Scope": {"name": (1, "string")},
    "Event": {"time_unix_nano": (1, "fixed64"), "name": (2, "string"), "attributes": (3, _MAP)},
    "Link": {"trace_id": (1, "bytes"), "span_id": (2, "bytes"), "attributes": (4, _MAP)},
    "Ids": {"trace_id": (1, "bytes"), "span_id": (2, "bytes"), "parent_span_id": (4, "bytes")},
    "Span": {
        "trace_id": (1, "bytes"),
        "span_id": (2, "bytes"),
        "parent_span_id": (4, "bytes"),
        "name": (5, "string"),
        "start_time_unix_nano": (7, "fixed64"),
        "end_time_unix_nano": (8, "fixed64"),
        "attributes": (9, _MAP),
        "events": (11, "repeated Event"),
        "links": (13, "repeated Link"),
    },
}
"""Names and numbers are OTLP's. Resource and scope are repeated because a message that comes in
several parts counts merged."""


class Slices(NamedTuple):
    """The spans of one scope of a request, as bytes, in order.

    ``spans`` is the repeated field itself: what is assigned or removed there is so in the request.
    """

    resource: bytes
    scope: bytes
    spans: Any


def split(request: SlicedRequest) -> Iterator[Slices]:
    """The scopes of a request, in order."""
    for group in request.resource_spans:
        resource = _joined(group.resource)
        for scope_spans in group.scope_spans:
            yield Slices(resource, _joined(scope_spans.scope), scope_spans.spans)


def _joined(parts: Any) -> bytes:
    """A message that came in several parts: joined bytes mean merged messages."""
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _file() -> FileDescriptorProto:
    return FileDescriptorProto(
        name="memtrace/slices.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=[common_pb2.DESCRIPTOR.name],
        message_type=[_message(name, fields) for name, fields in _SCHEMA.items()],
    )


def _message(name: str, fields: Mapping[str, tuple[int, str]]) -> DescriptorProto:
    message = DescriptorProto(name=name)
    for field, (number, kind) in fields.items():
        if kind == _MAP:
            message.nested_type.append(_entry())
        of = f"repeated {name}.AttributesEntry" if kind == _MAP else kind
        message.field.append(_field(field, number, of))
    return message


def _entry() -> DescriptorProto:
    """On the wire a map is a repeated pair of key and value, as OTLP's attributes are."""
    entry = DescriptorProto(name="AttributesEntry")
    entry.options.map_entry = True
    entry.field.append(_field("key", 1, "string"))
    value = _field("value", 2, "AnyValue")
    value.type_name = f".{common_pb2.AnyValue.DESCRIPTOR.full_name}"
    entry.field.append(value)
    return entry


def _field(name: str, number: int, kind: str) -> FieldDescriptorProto:
    of = kind.removeprefix("repeated ")
    field = FieldDescriptorProto(
        name=name, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    if of != kind:
        field.label = FieldDescriptorProto.LABEL_REPEATED
    if of in _TYPES:
        field.type = _TYPES[of]
    else:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{_PACKAGE}.{of}"
    return field


def _class(pool: DescriptorPool, name: str) -> Any:
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


_pool = DescriptorPool()
"""Of its own: the program's default one is everybody's."""
_pool.AddSerializedFile(common_pb2.DESCRIPTOR.serialized_pb)
_pool.AddSerializedFile(_file().SerializeToString())

sliced = _class(_pool, "Request").FromString
"""Bytes of an export request -> :data:`SlicedRequest`. Raises DecodeError."""
span_view = _class(_pool, "Span").FromString
"""Bytes of a span -> :data:`SpanView`. Raises DecodeError."""
ids_view = _class(_pool, "Ids").FromString
"""Bytes of a span -> a message with its ids only. Raises DecodeError."""
resource_view = _class(_pool, "Resource").FromString
"""Bytes of a resource -> a message with its attributes as a map. Raises DecodeError."""
scope_view = _class(_pool, "Scope").FromString
"""Bytes of a scope -> a message with its name. Raises DecodeError."""
