"""Plain Python values as OTLP attributes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

AttributeValue = bool | int | float | str | Sequence[str]


def encode(values: Mapping[str, AttributeValue | None]) -> list[KeyValue]:
    """Attributes in the order of ``values``; None is left out.

    Lone surrogates, which protobuf does not take, become question marks.
    """
    return [
        KeyValue(key=name, value=_any(value)) for name, value in values.items() if value is not None
    ]


def _any(value: AttributeValue) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value.encode("utf-8", "replace").decode())
    return AnyValue(array_value=ArrayValue(values=[_any(item) for item in value]))
