"""What the answer's own span says of its request: model, parameters, messages. Pure.

Standard ``gen_ai.*`` attributes, as whoever traced the call wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

_MODEL = "gen_ai.request.model"
_MESSAGES = "gen_ai.input.messages"
_INSTRUCTIONS = "gen_ai.system_instructions"
_PARAMETERS: Mapping[str, tuple[str, type]] = {
    "gen_ai.request.temperature": ("temperature", float),
    "gen_ai.request.top_p": ("top_p", float),
    "gen_ai.request.frequency_penalty": ("frequency_penalty", float),
    "gen_ai.request.presence_penalty": ("presence_penalty", float),
    "gen_ai.request.max_tokens": ("max_tokens", int),
    "gen_ai.request.seed": ("seed", int),
}
_STOP = "gen_ai.request.stop_sequences"
_ROLES = frozenset({"system", "user", "assistant", "developer"})


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """``messages``: role and text; ``None`` when they were not recorded, or not all as text."""

    model: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    messages: tuple[tuple[str, str], ...] | None = None


def read_call(attributes: Iterable[KeyValue]) -> RecordedCall:
    """The request that a span's attributes describe; what has an unknown shape is left out."""
    values = {item.key: item.value for item in attributes if item.key.startswith("gen_ai.")}
    parameters: dict[str, object] = {}
    for name, (parameter, convert) in _PARAMETERS.items():
        number = _number(values.get(name))
        if number is not None:
            parameters[parameter] = convert(number)
    stop = values.get(_STOP)
    if stop is not None and (texts := [v.string_value for v in stop.array_value.values]):
        parameters["stop"] = texts
    model = values.get(_MODEL, AnyValue()).string_value
    return RecordedCall(model, parameters, _messages(values))


def _number(value: AnyValue | None) -> float | None:
    kind = value.WhichOneof("value") if value is not None else None
    if value is None or kind not in ("int_value", "double_value"):
        return None
    return float(getattr(value, kind))


def _messages(values: Mapping[str, AnyValue]) -> tuple[tuple[str, str], ...] | None:
    recorded = _json(values.get(_MESSAGES))
    if not isinstance(recorded, list) or not recorded:
        return None
    read = [_message(item) for item in recorded]
    told = [message for message in read if message is not None]
    if len(told) < len(read):
        return None
    if _INSTRUCTIONS not in values:
        return tuple(told)
    instructions = _parts(_json(values[_INSTRUCTIONS]))
    return (("system", instructions), *told) if instructions is not None else None


def _json(value: AnyValue | None) -> object:
    if value is None or value.WhichOneof("value") != "string_value":
        return None
    try:
        return json.loads(value.string_value)
    except (ValueError, RecursionError):
        return None


def _message(item: object) -> tuple[str, str] | None:
    if not isinstance(item, Mapping) or item.get("role") not in _ROLES:
        return None
    text = _parts(item.get("parts"))
    role = "system" if item["role"] == "developer" else str(item["role"])
    return (role, text) if text is not None else None


def _parts(parts: object) -> str | None:
    """The text of a message's parts; ``None`` when one of them is no text."""
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        return None
    texts = [_text(part) for part in parts]
    known = [text for text in texts if text is not None]
    return "\n".join(known) if len(known) == len(texts) else None


def _text(part: object) -> str | None:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        return None
    content = part.get("content")
    return content if isinstance(content, str) else None
