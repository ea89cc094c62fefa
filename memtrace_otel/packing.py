"""Packing lineage into span attributes. Pure.

One JSON object per span; bounded by references, and split when the SDK limits the length of an
attribute (DESIGN section 3.2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from memtrace_otel import semconv

_SURROGATE = re.compile("[\ud800-\udfff]")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_MAX_PARTS = 64
_MIN_LIMIT = 16

_LISTS = (
    semconv.INPUTS,
    semconv.SHOWN,
    semconv.OUTPUTS,
    semconv.DELIVERED,
    semconv.SUPERSEDES,
    semconv.DROPPED,
    semconv.DECISIONS,
    semconv.EDGES,
    semconv.INFERRED,
    semconv.CUT,
)
_CUT_ORDER = (
    semconv.DROPPED,
    semconv.SHOWN,
    semconv.EDGES,
    semconv.INFERRED,
    semconv.CUT,
    semconv.DECISIONS,
    semconv.SUPERSEDES,
    semconv.DELIVERED,
    semconv.INPUTS,
    semconv.OUTPUTS,
)
_PLAIN_LISTS = frozenset(
    {
        semconv.INPUTS,
        semconv.SHOWN,
        semconv.OUTPUTS,
        semconv.DELIVERED,
        semconv.SUPERSEDES,
        semconv.INFERRED,
        semconv.CUT,
    }
)
_BY_REFERENCE = (semconv.TIMES, semconv.ROLES, semconv.FROM)


def dumps_lineage(lineage: Mapping[str, object], sequence: str, key_name: str) -> str:
    """:func:`dumps` of a lineage object, joined by hand where lists hold plain references.

    References hold no control characters and no surrogates, so only quotes and backslashes
    would need escaping; the encoder takes five times as long. ``sequence`` and ``key_name`` are
    hex digits and come last.
    """
    parts = []
    for name, value in lineage.items():
        if name in _PLAIN_LISTS and isinstance(value, list) and value:
            joined = '","'.join(value)
            if "\\" not in joined and joined.count('"') == 2 * len(value) - 2:
                parts.append(f'"{name}":["{joined}"]')
                continue
        parts.append(f'"{name}":{dumps(value)}')
    parts.append(f'"{semconv.SEQ}":"{sequence}","{semconv.KEY}":"{key_name}"')
    return "{" + ",".join(parts) + "}"


def dumps(value: object) -> str:
    """Compact JSON that any reader accepts: lone surrogates become U+FFFD."""
    text = _encode(value)
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def truncate(lineage: dict[str, object], limit: int = semconv.MAX_REFERENCES) -> None:
    """Cut ``lineage`` in place to ``limit`` references, and say so under ``truncated``.

    ``dropped`` goes first, from its worst rank (its end), then what attribution needs least.
    """
    most = sum([len(value) for value in lineage.values() if type(value) is list])
    over = most - limit
    if over > 0:
        over = sum(_length(lineage, name) for name in _LISTS) - limit
    if over > 0:
        counts = _counts(lineage)
        for name in _CUT_ORDER:
            over -= _shorten(lineage, name, over, counts)
            if over <= 0:
                break
        lineage[semconv.TRUNCATED] = counts
    for name in _BY_REFERENCE:
        if name in lineage:
            _limit_map(lineage, name, limit)


def split(name: str, text: str, limit: int | None) -> dict[str, str]:
    """``{name: text}``, or its pieces of ``limit`` characters as ``name``, ``name.1`` …"""
    if limit is None or len(text) <= limit:
        return {name: text}
    pieces = [text[at : at + limit] for at in range(0, len(text), limit)]
    rest = {f"{name}.{number}": piece for number, piece in enumerate(pieces[1:], 1)}
    return {name: pieces[0], **rest}


def pack(
    lineage: dict[str, object], sequence: str, key_name: str, limit: int | None
) -> dict[str, str]:
    """The attributes that carry ``lineage``, last written, at most 64 of them."""
    truncate(lineage)
    text = dumps_lineage(lineage, sequence, key_name)
    if limit is None or len(text) <= limit:
        return {semconv.MEMTRACE_LINEAGE: text}
    limit = max(limit, _MIN_LIMIT)
    references = semconv.MAX_REFERENCES
    while len(text) > limit * _MAX_PARTS and references:
        references //= 2
        truncate(lineage, references)
        text = dumps_lineage(lineage, sequence, key_name)
    return split(semconv.MEMTRACE_LINEAGE, text, limit)


def _length(lineage: Mapping[str, object], name: str) -> int:
    values = lineage.get(name)
    return len(values) if isinstance(values, list) else 0


def _counts(lineage: Mapping[str, object]) -> dict[str, int]:
    counts = lineage.get(semconv.TRUNCATED)
    return dict(counts) if isinstance(counts, dict) else {}


def _shorten(lineage: dict[str, object], name: str, over: int, counts: dict[str, int]) -> int:
    values = lineage.get(name)
    if not isinstance(values, list) or not values:
        return 0
    cut = min(over, len(values))
    kept = values[: len(values) - cut]
    counts[name] = counts.get(name, 0) + cut
    if kept:
        lineage[name] = kept
    else:
        del lineage[name]
    if name == semconv.DELIVERED and isinstance(scores := lineage.get(semconv.SCORES), list):
        lineage[semconv.SCORES] = scores[: len(kept)]
    return cut


def _limit_map(lineage: dict[str, object], name: str, limit: int) -> None:
    values = lineage.get(name)
    if isinstance(values, dict) and len(values) > limit:
        lineage[name] = dict(list(values.items())[:limit])
