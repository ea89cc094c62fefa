"""Recently seen values, and which of them occur in the messages of a prompt.

An application that builds its prompts by hand never says which memory went into which prompt.
What was delivered a moment ago is known, though: a value that occurs in the prompt word for
word (Unicode NFC, any white space counting as one space) was put there. The store is bounded by
items and by characters; the oldest go first and are counted.

The search costs one pass over the prompt however many values are kept. Values hang in a
skip trie: for each of the prefix lengths 12, 24, 48 … that a value reaches, a node under
that prefix. At every place in the prompt where a word starts, the nodes are followed as long
as the text agrees, and a value is confirmed by one exact lookup of the slice of its length.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import RLock
from typing import Final, Literal, NamedTuple

from memtrace_otel.variables import clean_text, record_of

Kind = Literal["delivered", "message", "query", "answer"]
Origin = tuple[str, str]
"""Trace id and span id, lower-case hex digits."""

MIN_CHARS: Final = 12
MIN_WORDS: Final = 3
"""What a value needs to be matched by content alone (decision table, hard cases)."""
MAX_ITEMS: Final = 10_000
MAX_CHARS: Final = 2_000_000
MAX_SCANNED_CHARS: Final = 1_000_000
"""Of one prompt; the rest is not searched and counted."""
_MAX_PLACES: Final = 64
"""Occurrences of one value that are remembered within one search."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts that do without spaces between words: a character there counts as a word."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_START = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
_SPACED_CHARACTER = re.compile(rf"[^\W{_UNSPACED}]")
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([nrt"/\\]))')
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Match:
    """A kept value that occurs in a prompt.

    Attributes:
        ref: reference of the value.
        origin: the operation that delivered or produced it, when known.
        graph_id: graph in which it was seen; empty when unknown.
        kind: what it was when it was seen.
        text: the value, normalised.
        indexes: of the texts it occurs in, ascending.
        whole: of the texts that are this value and nothing else, ascending.
        age: 0 for the value added last; counts additions, not time.
    """

    ref: str
    origin: Origin | None
    graph_id: str
    kind: Kind
    text: str
    indexes: tuple[int, ...]
    whole: tuple[int, ...]
    age: int


@dataclass(frozen=True, slots=True)
class _Value:
    ref: str
    text: str
    origin: Origin | None
    graph_id: str
    kind: Kind
    number: int


@dataclass(slots=True)
class _Node:
    """Values under one prefix of length p: how many of each length in [p, 2p), and how many
    reach beyond."""

    lengths: dict[int, int] = field(default_factory=dict)
    deeper: int = 0


class _Place(NamedTuple):
    """Where a value was found; ``escaped``: offsets count in the text behind JSON escapes."""

    text: int
    start: int
    whole: bool = False
    escaped: bool = False


_Places = dict[str, list[_Place]]
_Found = tuple[_Value, list[_Place]]


def normalise(text: str) -> str:
    """NFC, every run of white space one space, none outside."""
    return " ".join(clean_text(text).split())


def is_distinctive(text: str) -> bool:
    """Whether a normalised value is long enough to be matched by content alone."""
    if len(text) < MIN_CHARS:
        return False
    return sum(1 for _ in islice(_WORD.finditer(text), MIN_WORDS)) == MIN_WORDS


class RecentValues:
    """Values seen lately in this process. Thread-safe.

    Attributes:
        evicted: values forgotten, or never kept, for lack of room.
        unscanned_chars: characters of prompts that were too long to be searched.
    """

    def __init__(self, max_items: int = MAX_ITEMS, max_chars: int = MAX_CHARS) -> None:
        self.evicted = 0
        self.unscanned_chars = 0
        self._max_items = max_items
        self._max_chars = max_chars
        self._chars = 0
        self._number = 0
        self._values: OrderedDict[tuple[str, str, Kind], _Value] = OrderedDict()
        self._by_text: dict[str, dict[tuple[str, str, Kind], _Value]] = {}
        self._nodes: dict[str, _Node] = {}
        # A destructor may add a value while this thread searches.
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._values)

    @property
    def chars(self) -> int:
        """Characters kept now."""
        return self._chars

    def add(self, ref: str, text: str, origin: Origin | None, graph_id: str, kind: Kind) -> None:
        """Keep a value; one seen again becomes the most recent, with its new origin."""
        normal = normalise(text)
        if not normal:
            return
        with self._lock:
            self._number += 1
            key = (ref, graph_id, kind)
            if key in self._values:
                self._remove(key)
            if len(normal) > self._max_chars or self._max_items < 1:
                self.evicted += 1
                return
            self._insert(key, _Value(ref, normal, origin, graph_id, kind, self._number))
            while len(self._values) > self._max_items or self._chars > self._max_chars:
                self._remove(next(iter(self._values)))
                self.evicted += 1

    def find(self, texts: Sequence[str]) -> list[Match]:
        """The kept values that occur in ``texts``: longest first, then most recent first.

        A value too short to be matched by content alone is found only as a message, query or
        answer that is a whole text. An older version of a record is found only where it
        does not merely stand inside a longer version of the same record.
        """
        places: _Places = {}
        budget = MAX_SCANNED_CHARS
        for index, text in enumerate(texts):
            searched = text[:budget]
            self.unscanned_chars += len(text) - len(searched)
            budget -= len(searched)
            if searched:
                self._search(index, searched, places)
        with self._lock:
            found = [
                (value, spots)
                for text, spots in places.items()
                for value in self._by_text.get(text, {}).values()
            ]
            newest = self._number
        inner = _inside_other_version(found)
        matches = [
            match
            for value, spots in found
            if (value.ref, value.text) not in inner
            and (match := _match(value, spots, newest)) is not None
        ]
        return sorted(matches, key=lambda match: (-len(match.text), match.age))

    def _search(self, index: int, text: str, places: _Places) -> None:
        normal = normalise(text)
        with self._lock:
            if normal in self._by_text:
                _note(places, normal, _Place(index, 0, whole=True))
            self._walk(index, normal, places)
            if "\\" in text:
                self._walk(index, normalise(_unescape(text)), places, escaped=True)

    def _walk(self, index: int, text: str, places: _Places, escaped: bool = False) -> None:
        nodes = self._nodes
        if not nodes:
            return
        for start in _starts(text):
            size = MIN_CHARS
            node = nodes.get(text[start : start + size])
            while node is not None:
                for length in node.lengths:
                    end = start + length
                    value = text[start:end]
                    if value in self._by_text and not _splits_word(text, end):
                        _note(places, value, _Place(index, start, escaped=escaped))
                size *= 2
                node = nodes.get(text[start : start + size]) if node.deeper else None

    def _insert(self, key: tuple[str, str, Kind], value: _Value) -> None:
        self._values[key] = value
        self._chars += len(value.text)
        same_text = self._by_text.setdefault(value.text, {})
        if not same_text and is_distinctive(value.text):
            self._grow(value.text)
        same_text[key] = value

    def _remove(self, key: tuple[str, str, Kind]) -> None:
        value = self._values.pop(key)
        self._chars -= len(value.text)
        same_text = self._by_text[value.text]
        del same_text[key]
        if not same_text:
            del self._by_text[value.text]
            if is_distinctive(value.text):
                self._prune(value.text)

    def _grow(self, text: str) -> None:
        for size in _sizes(len(text)):
            node = self._nodes.setdefault(text[:size], _Node())
            if len(text) < 2 * size:
                node.lengths[len(text)] = node.lengths.get(len(text), 0) + 1
            else:
                node.deeper += 1

    def _prune(self, text: str) -> None:
        for size in _sizes(len(text)):
            node = self._nodes[text[:size]]
            if len(text) < 2 * size:
                node.lengths[len(text)] -= 1
                if not node.lengths[len(text)]:
                    del node.lengths[len(text)]
            else:
                node.deeper -= 1
            if not node.lengths and not node.deeper:
                del self._nodes[text[:size]]


def _sizes(length: int) -> Iterator[int]:
    size = MIN_CHARS
    while size <= length:
        yield size
        size *= 2


def _starts(text: str) -> Iterator[int]:
    return (found.start() for found in _START.finditer(text))


def _splits_word(text: str, end: int) -> bool:
    """Whether a cut at ``end`` goes through a word: "tea" is not in "teapot"."""
    return (
        end < len(text)
        and _SPACED_CHARACTER.match(text, end) is not None
        and _SPACED_CHARACTER.match(text, end - 1) is not None
    )


def _unescape(text: str) -> str:
    """The text behind JSON escapes, for values that were dumped into a prompt as JSON."""
    plain = _ESCAPE.sub(lambda at: chr(int(at[1], 16)) if at[1] else _ESCAPED[at[2]], text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _note(places: _Places, text: str, place: _Place) -> None:
    spots = places.setdefault(text, [])
    if len(spots) < _MAX_PLACES and place not in spots:
        spots.append(place)


def _match(value: _Value, spots: list[_Place], newest: int) -> Match | None:
    if value.kind == "delivered" and not is_distinctive(value.text):
        return None  # "yes" was delivered, and equals many a message by chance
    return Match(
        ref=value.ref,
        origin=value.origin,
        graph_id=value.graph_id,
        kind=value.kind,
        text=value.text,
        indexes=tuple(sorted({spot.text for spot in spots})),
        whole=tuple(sorted(spot.text for spot in spots if spot.whole)),
        age=newest - value.number,
    )


def _inside_other_version(found: list[_Found]) -> set[tuple[str, str]]:
    """``(ref, text)`` of values seen only inside a longer value of the same record."""
    by_record: dict[str, list[_Found]] = {}
    for value, spots in found:
        by_record.setdefault(record_of(value.ref), []).append((value, spots))
    return {
        (value.ref, value.text)
        for versions in by_record.values()
        if len(versions) > 1
        for value, spots in versions
        if all(_covered(value, spot, versions) for spot in spots)
    }


def _covered(value: _Value, spot: _Place, versions: list[_Found]) -> bool:
    end = spot.start + len(value.text)
    return any(
        (other.text, other.escaped) == (spot.text, spot.escaped)
        and other.start <= spot.start
        and end <= other.start + len(longer.text)
        for longer, others in versions
        if len(longer.text) > len(value.text)
        for other in others
    )
