"""Sizes that destinations keep whole and searchable. Pure.

Cassandra and Elasticsearch find values below 256 bytes only; Tempo cuts off what is above 2,048.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_otel import semconv

MAX_SEARCHABLE_BYTES = 255
MAX_BYTES = 2_047
ELLIPSIS = "…"
_LONGEST_WORD = 40
_LONGEST_ID = 300
"""With kind and version; what is longer and has no space is no id."""
_LONG = frozenset(
    {
        semconv.MEMTRACE_ATTRIBUTION_EXPLANATION,
        semconv.GEN_AI_EVALUATION_EXPLANATION,
        semconv.MEMTRACE_JUDGEMENT_NOTE,
    }
)
_IDS = frozenset(
    {semconv.MEMTRACE_GRAPH_ID, semconv.MEMTRACE_HOP_RECORD, semconv.MEMTRACE_HOP_VERSIONS}
)
"""Ids of any length that may hold white space or other scripts."""
_FIRST_WORD = re.compile(r"\S+")
_LAST_WORD = re.compile(r"\S+\Z")
_END_OF_ASCII = re.compile(r"[!-~]+\Z")
_LIST_OVERHEAD, _ITEM_OVERHEAD = 2, 4


def attributes(values: Mapping[str, AttributeValue | None]) -> list[KeyValue]:
    """In the order of ``values``, each within its size; None and what is empty is left out.

    An id that does not fit is left out: the beginning of an id names something else.
    """
    bounded = {name: _bounded(name, value) for name, value in values.items() if value is not None}
    return encode({name: value for name, value in bounded.items() if value not in ("", [])})


def clipped(value: str, limit: int) -> str:
    """Of at most ``limit`` bytes of UTF-8: shortened between words, with an ellipsis.

    An id has no white space, so none is cut; in a script without spaces it is cut between
    characters.
    """
    encoded = value.encode(errors="replace")
    if len(encoded) <= limit:
        return encoded.decode()
    whole = encoded.decode()
    kept = encoded[: limit - len(ELLIPSIS.encode())].decode(errors="ignore")
    if not whole[len(kept)].isspace():
        kept = _without_broken_word(kept, whole)
    kept = kept.rstrip()
    return f"{kept}{ELLIPSIS}" if kept else ""


def fits_in_list(values: Iterable[str]) -> bool:
    """Whether a list is no longer than an attribute may be, as the JSON in which Jaeger keeps
    it."""
    sizes = [len(value.encode(errors="replace")) + _ITEM_OVERHEAD for value in values]
    return sum(sizes) + _LIST_OVERHEAD <= MAX_BYTES


def _without_broken_word(kept: str, whole: str) -> str:
    start = _LAST_WORD.search(kept)
    word = _FIRST_WORD.match(whole, start.start()) if start else None
    if word is None:
        return kept
    if word[0].isascii():
        return kept[: word.start()] if len(word[0]) <= _LONGEST_ID else kept
    if word.start() and len(word[0]) <= _LONGEST_WORD:
        return kept[: word.start()]
    return _END_OF_ASCII.sub("", kept)


def _bounded(name: str, value: AttributeValue) -> AttributeValue:
    limit = MAX_BYTES if name in _LONG else MAX_SEARCHABLE_BYTES
    fitting = _whole if name in _IDS else clipped
    if isinstance(value, str):
        return fitting(value, limit)
    if isinstance(value, Sequence):
        return _within_list([each for item in value if (each := fitting(item, limit))])
    return value


def _whole(value: str, limit: int) -> str:
    return value if len(value.encode(errors="replace")) <= limit else ""


def _within_list(values: Sequence[str]) -> list[str]:
    """As many of the first as fit, together."""
    kept = list(values)
    while not fits_in_list(kept):
        kept.pop()
    return kept
