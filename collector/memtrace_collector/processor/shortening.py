"""Texts that are longer than a destination takes, made shorter before they leave. Pure.

What is packed JSON is split over several attributes, from which a reader puts it together
(DESIGN section 3.2); of any other text the beginning goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.otlp.slices import sliced
from memtrace_otel import semconv

NAME_BYTES = 2_000
"""Of the name of an attribute or a service: they stand in one key with the value. Messages up to
this size hold nothing that is too long, however it is written, and stay as they are."""
_ELLIPSIS = "…"
_PACKED = (semconv.MEMTRACE_LINEAGE, semconv.MEMTRACE_VALUES)
_BYTES_PER_CHARACTER = 4


def shorten(body: bytes, longest: int) -> tuple[bytes, int]:
    """A protobuf trace request whose texts have at most ``longest`` bytes, and how many were
    longer. What holds none of them stays byte for byte.

    Raises:
        DecodeError: it is no such request.
    """
    request = sliced(body)
    count = 0
    for group in request.resource_spans:
        count += _rewrite(group.resource, Resource, _resource, longest)
        for scope in group.scope_spans:
            count += _rewrite(scope.scope, InstrumentationScope, _scope, longest)
            count += _rewrite(scope.spans, Span, _span, longest)
    return (bytes(request.SerializeToString()), count) if count else (body, 0)


def _rewrite(slices: Any, kind: Any, change: Callable[[Any, int], int], longest: int) -> int:
    total = 0
    for place, data in enumerate(slices):
        if len(data) > NAME_BYTES:
            message = kind.FromString(data)
            count = change(message, longest)
            if count:
                slices[place] = message.SerializeToString()
            total += count
    return total


def _resource(resource: Resource, longest: int) -> int:
    services = [item for item in resource.attributes if item.key == semconv.SERVICE_NAME]
    long = sum(_field(item.value, "string_value", NAME_BYTES) for item in services)
    return long + _attributes(resource.attributes, longest)


def _scope(scope: InstrumentationScope, longest: int) -> int:
    long = _field(scope, "name", longest) + _field(scope, "version", longest)
    return long + _attributes(scope.attributes, longest)


def _span(span: Span, longest: int) -> int:
    count = _field(span, "name", longest) + _field(span, "trace_state", longest)
    if span.HasField("status"):
        count += _field(span.status, "message", longest)
    for event in span.events:
        count += _field(event, "name", longest) + _attributes(event.attributes, longest)
    return count + _attributes(span.attributes, longest)


def _attributes(items: Any, longest: int) -> int:
    count = 0
    long = [item for item in items if item.ByteSize() > NAME_BYTES]
    for item in long:
        count += _field(item, "key", NAME_BYTES)
        text = _text(item.value)
        if len(text.encode()) <= longest:
            continue
        count += 1
        for name, part in _parts(items, item.key, text, longest).items():
            target = item if name == item.key else items.add(key=name)
            target.value.string_value = part
    return count


def _parts(items: Any, name: str, text: str, longest: int) -> dict[str, str]:
    """What takes the place of a text, by attribute."""
    is_split = any(item.key == f"{name}.1" for item in items)
    if name not in _PACKED or is_split:
        return {name: _beginning(text, longest)}
    size = longest // _BYTES_PER_CHARACTER
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return {f"{name}.{number}" if number else name: part for number, part in enumerate(parts)}


def _text(value: AnyValue) -> str:
    """A value as a destination writes it that keeps texts alone, or longer."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    return value.bytes_value.hex() if kind == "bytes_value" else MessageToJson(value)


def _field(message: Any, name: str, longest: int) -> int:
    """Shorten a field that holds a text; 1 when it was too long."""
    text: str = getattr(message, name)
    if len(text.encode()) <= longest:
        return 0
    setattr(message, name, _beginning(text, longest))
    return 1


def _beginning(text: str, longest: int) -> str:
    kept = text.encode()[: longest - len(_ELLIPSIS.encode())]
    return kept.decode(errors="ignore") + _ELLIPSIS
