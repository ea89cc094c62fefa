"""Sizes that destinations keep whole and searchable. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_otel import semconv

MAX_SEARCHABLE_BYTES = 255
MAX_BYTES = 2_047
_LONG = frozenset({semconv.MEMTRACE_ATTRIBUTION_EXPLANATION, semconv.GEN_AI_EVALUATION_EXPLANATION})


def attributes(values: Mapping[str, AttributeValue | None]) -> list[KeyValue]:
    """In the order of ``values``, each within its size; None and empty texts are left out."""
    return encode(
        {
            name: _bounded(value, MAX_BYTES if name in _LONG else MAX_SEARCHABLE_BYTES)
            for name, value in values.items()
            if value is not None and value != ""
        }
    )


def clipped(value: str, limit: int) -> str:
    """Of at most ``limit`` bytes of UTF-8."""
    return value.encode(errors="replace")[:limit].decode(errors="ignore")


def _bounded(value: AttributeValue, limit: int) -> AttributeValue:
    if isinstance(value, str):
        return clipped(value, limit)
    if isinstance(value, Sequence):
        return [clipped(each, limit) for each in value]
    return value
