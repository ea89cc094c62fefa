"""RFC 8785 (JSON Canonicalization Scheme) for values that go into digests. Pure.

A value that JSON cannot hold becomes its ``str()``, a number that is not finite becomes
``null``: a digest must always exist, because capture must never fail in the host.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

_MAX_DEPTH = 100
_MAX_EXACT_INT = 2**53
_encode_string = json.JSONEncoder(ensure_ascii=False).encode


def dumps(value: object) -> str:
    """The RFC 8785 text of ``value``."""
    return _dumps(value, 0)


def _dumps(value: object, depth: int) -> str:
    if value is None or depth > _MAX_DEPTH:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return str(int(value)) if abs(value) <= _MAX_EXACT_INT else _number(_as_double(value))
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        items = sorted(
            ((str(name), item) for name, item in value.items()), key=lambda item: _utf16(item[0])
        )
        return "{" + ",".join(f"{_string(k)}:{_dumps(v, depth + 1)}" for k, v in items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_dumps(item, depth + 1) for item in value) + "]"
    return _string(str(value))


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> str:
    if not text.isascii():
        text = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return _encode_string(text)


def _as_double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _number(value: float) -> str:
    """ECMAScript ``Number.prototype.toString``, as RFC 8785 section 3.2.2.3 asks."""
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        padded = digits.ljust(point, "0")
        rest = padded[point:]
        return sign + padded[:point] + (f".{rest}" if rest else "")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    shown = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{sign}{shown}e{'+' if point > 0 else '-'}{abs(point - 1)}"
