"""The texts of captured values. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from memtrace_collector.graph.facts import Value

_MAX_DEPTH = 8
_MAX_CHARS = 4_000_000


def plain_text(value: Value) -> str:
    """The value's own text, references left out."""
    if isinstance(value.content, str):
        return value.content
    return "".join(part for part in value.content if isinstance(part, str))


def references(value: Value) -> tuple[str, ...]:
    """The references that the value's content quotes."""
    if isinstance(value.content, str):
        return ()
    return tuple(ref for part in value.content if (ref := _reference(part)))


def expand(value: Value, values: Mapping[str, Value]) -> str:
    """The value's text with quoted references filled in, as far as they are known."""
    parts: list[str] = []
    _expand(value, values, parts, 0)
    return "".join(parts)[:_MAX_CHARS]


def _expand(value: Value, values: Mapping[str, Value], parts: list[str], depth: int) -> None:
    if isinstance(value.content, str):
        parts.append(value.content)
        return
    for part in value.content:
        if isinstance(part, str):
            parts.append(part)
            continue
        quoted = values.get(_reference(part))
        if quoted is not None and depth < _MAX_DEPTH:
            _expand(quoted, values, parts, depth + 1)


def _reference(part: object) -> str:
    reference = part.get("ref") if isinstance(part, dict) else None
    return reference if isinstance(reference, str) else ""
