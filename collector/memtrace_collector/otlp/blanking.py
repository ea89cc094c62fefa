"""Taking spans or log records out of an export request without changing its size. Pure.

In protobuf an element that goes becomes a field that no schema knows, filled with zeros; every
other byte stays. In JSON it leaves the document, and white space fills the end. An element whose
neighbours all go takes the resource (or scope) around it with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

Goes = Callable[[int], bool]
"""Whether an element goes, by its number in the request, counted from 0 through all scopes."""

_UNKNOWN = 15
_UNKNOWN_TAG = _UNKNOWN << 3 | 2
_VARINT, _FIXED64, _LENGTH, _GROUP, _END_GROUP, _FIXED32 = range(6)
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_PATH = (1, 2, 2)
"""Field numbers down to the elements: resources, scopes, spans or log records."""
_JSON_PATH = {
    "traces": (
        ("resourceSpans", "resource_spans"),
        ("scopeSpans", "scope_spans"),
        ("spans",),
    ),
    "logs": (
        ("resourceLogs", "resource_logs"),
        ("scopeLogs", "scope_logs"),
        ("logRecords", "log_records"),
    ),
}


@dataclass(frozen=True, slots=True)
class _Field:
    """A length-delimited field: where its tag, its length and its value start, and its end."""

    number: int
    tag: int
    length: int
    value: int
    end: int


class _Counter:
    """Gives each element its number and says whether it goes."""

    def __init__(self, goes: Goes) -> None:
        self._goes = goes
        self._next = 0

    def next_goes(self) -> bool:
        number = self._next
        self._next += 1
        return self._goes(number)


def blank_protobuf(body: bytes, goes: Goes) -> bytes:
    """``body`` without the elements that go, as long as before.

    Raises:
        ValueError: not protobuf.
    """
    buffer = bytearray(body)
    _blank_level(buffer, 0, len(buffer), 0, _Counter(goes))
    return bytes(buffer)


def blank_json(body: bytes, signal: Literal["traces", "logs"], goes: Goes) -> bytes:
    """``body`` without the elements that go, as long as before.

    What only Python takes for JSON (``NaN``, halves of surrogate pairs) is written anew, and goes
    whole where that is longer than before.

    Raises:
        ValueError: not JSON.
    """
    path = _JSON_PATH[signal]
    try:
        raw = _kept_json(msgspec.Raw(body), path, _Counter(goes))
        shorter = b"{}" if raw is None else bytes(raw)
    except msgspec.DecodeError:
        kept = _kept_loose(json.loads(body), path, _Counter(goes))
        shorter = json.dumps(kept or {}, separators=(",", ":")).encode()
    return shorter.ljust(len(body)) if len(shorter) <= len(body) else blank_all(body, "json")


def blank_all(body: bytes, encoding: Literal["protobuf", "json"]) -> bytes:
    """A request with nothing in it, as long as ``body``, whatever that was."""
    if encoding == "json":
        return b"{}".ljust(len(body)) if len(body) >= len(b"{}") else b" " * len(body)
    if len(body) < 2:  # a tag and a length
        return bytes(len(body))
    return _unknown_field(len(body))


def is_blank(body: bytes, encoding: Literal["protobuf", "json"]) -> bool:
    """Whether everything went out of a request; costs nothing for any other."""
    if encoding == "json":
        return body.startswith(b"{}") and not body[2:].strip()
    if not body.startswith(bytes([_UNKNOWN_TAG])):
        return False
    buffer = bytearray(body)
    try:
        return all(field.number == _UNKNOWN for field in _fields(buffer, 0, len(buffer)))
    except ValueError:
        return False


def _blank_level(buffer: bytearray, start: int, end: int, depth: int, counter: _Counter) -> bool:
    """Blank below one message; True when there were elements and all of them went."""
    met = stayed = False
    for field in _fields(buffer, start, end):
        if field.number != _PATH[depth]:
            continue
        if depth == len(_PATH) - 1:
            goes = counter.next_goes()
        else:
            goes = _blank_level(buffer, field.value, field.end, depth + 1, counter)
        met = True
        if goes:
            _blank(buffer, field)
        else:
            stayed = True
    return met and not stayed


def _blank(buffer: bytearray, field: _Field) -> None:
    """Tag of the same length, the same length, zeros: nothing moves."""
    buffer[field.tag : field.length] = _varint(_UNKNOWN_TAG, field.length - field.tag)
    buffer[field.value : field.end] = bytes(field.end - field.value)


def _fields(buffer: bytearray, start: int, end: int) -> Iterator[_Field]:
    """The length-delimited fields of a message, in order."""
    position = start
    while position < end:
        tag = position
        key, position = _read_varint(buffer, position, end)
        length = position
        if key & 7 == _LENGTH:
            size, position = _read_varint(buffer, position, end)
            field = _Field(key >> 3, tag, length, position, position + size)
            position = field.end
            if position <= end:
                yield field
        else:
            position = _after_value(buffer, position, end, key)
        if position > end:
            raise ValueError("a protobuf field is longer than its message")


def _after_value(buffer: bytearray, position: int, end: int, key: int) -> int:
    """Where a field that is not length-delimited ends."""
    kind = key & 7
    if kind == _VARINT:
        return _read_varint(buffer, position, end)[1]
    if kind in _FIXED_BYTES:
        return position + _FIXED_BYTES[kind]
    if kind != _GROUP:
        raise ValueError(f"no such wire type in protobuf: {kind}")
    while position < end:
        inner, position = _read_varint(buffer, position, end)
        if inner & 7 == _END_GROUP:
            return position
        if inner & 7 == _LENGTH:
            size, position = _read_varint(buffer, position, end)
            position += size
        else:
            position = _after_value(buffer, position, end, inner)
    raise ValueError("a protobuf group does not end")


def _read_varint(buffer: bytearray, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:  # ten bytes of seven bits
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # the last one
            return value, position
        shift += 7
    raise ValueError("a protobuf number does not end")


def _varint(value: int, size: int) -> bytes:
    """A number in exactly ``size`` bytes: longer than needed is allowed, and ends in zeros."""
    groups = [value >> 7 * number & 0x7F for number in range(size)]
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def _unknown_field(size: int) -> bytes:
    """An unknown field of exactly ``size`` bytes, at least 2."""
    length_bytes = next(n for n in range(1, 10) if size - 1 - n < 1 << 7 * n)
    content = size - 1 - length_bytes
    return bytes([_UNKNOWN_TAG]) + _varint(content, length_bytes) + bytes(content)


def _kept_json(
    raw: msgspec.Raw, path: tuple[tuple[str, ...], ...], counter: _Counter
) -> msgspec.Raw | None:
    """An object without the elements that go; None when there were some and all went."""
    if not path:
        return None if counter.next_goes() else raw
    document = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    met = stayed = False
    for name in [name for name in document if name in path[0]]:
        items = msgspec.json.decode(document[name], type=list[msgspec.Raw] | None)
        kept = [_kept_json(item, path[1:], counter) for item in items or ()]
        met = met or bool(kept)
        left = [item for item in kept if item is not None]
        stayed = stayed or bool(left)
        if items is not None:
            document[name] = msgspec.Raw(msgspec.json.encode(left))
    if met and not stayed:
        return None
    return msgspec.Raw(msgspec.json.encode(document))


def _kept_loose(document: Any, path: tuple[tuple[str, ...], ...], counter: _Counter) -> Any:
    """As :func:`_kept_json`, of what Python's own parser has read."""
    if not path:
        return None if counter.next_goes() else document
    met = stayed = False
    for name in [name for name in document if name in path[0]]:
        kept = [_kept_loose(item, path[1:], counter) for item in document[name] or ()]
        left = [item for item in kept if item is not None]
        met, stayed = met or bool(kept), stayed or bool(left)
        document[name] = left
    return None if met and not stayed else document
