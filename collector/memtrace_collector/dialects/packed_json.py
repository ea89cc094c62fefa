"""Reading JSON that travelled in attributes: split over several, shortened, or malformed. Pure."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import msgspec

from memtrace_collector.dialects.attributes import Attributes

_SURROGATE = re.compile("[\ud800-\udfff]")
_CLOSER = {"{": "}", "[": "]"}
_CLOSERS = frozenset(_CLOSER.values())
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|[^"\[\]{},]+', re.DOTALL)
_MAX_DEPTH = 64
_MAX_PARTS = 10_000
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


class Packed(NamedTuple):
    """A JSON object as far as it could be read; ``complete`` is False after a salvage."""

    data: dict[str, object]
    complete: bool


def read(attributes: Attributes, name: str) -> Packed | None:
    """The object in attribute ``name``, or split over ``name.1``, ``name.2`` …

    Returns None when there is no such attribute. Never raises: what cannot be parsed is cut
    back to the longest readable beginning.
    """
    if name not in attributes and f"{name}.1" not in attributes:
        return None
    whole = attributes.get(name)
    if isinstance(whole, dict):
        return Packed(whole, complete=True)
    parts = [whole] if isinstance(whole, str) else []
    for number in range(1, _MAX_PARTS):
        part = attributes.get(f"{name}.{number}")
        if not isinstance(part, str):
            break
        parts.append(part)
    return _parse("".join(parts)) if parts else None


def _parse(text: str) -> Packed:
    try:
        return _object(_loads(text), complete=True)
    except _UNREADABLE:
        pass
    try:
        return _object(_loads(salvage(text)), complete=False)
    except _UNREADABLE:
        return Packed({}, complete=False)


def _object(value: object, *, complete: bool) -> Packed:
    return Packed(value, complete) if isinstance(value, dict) else Packed({}, complete=False)


def loads(text: str) -> object:
    """Any JSON value; None when the text is not JSON."""
    try:
        return _loads(text)
    except _UNREADABLE:
        return None


def _loads(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # msgspec refuses escaped lone surrogates, which the standard library accepts
        return _without_surrogates(json.loads(text))


def _without_surrogates(value: object) -> object:
    cleaned = _SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False))
    return msgspec.json.decode(cleaned)


def salvage(text: str) -> str:
    """The longest beginning of a JSON text that closes into valid JSON, closed.

    What is nested deeper than any contract value is cut off as well.
    """
    stack: list[str] = []
    safe, closers = 0, ""
    position = 0
    while (match := _PART.match(text, position)) is not None:
        part, position = match[0], match.end()
        if part in _CLOSER:
            stack.append(_CLOSER[part])
        elif part in _CLOSERS and (not stack or stack.pop() != part):
            break
        if len(stack) > _MAX_DEPTH:
            break
        if part in _CLOSER or part in _CLOSERS:
            safe, closers = position, "".join(reversed(stack))
        elif part == "," and stack:
            safe, closers = match.start(), "".join(reversed(stack))
    return text[:safe] + closers
