"""What a question gives: a head and a list that can be read whole or page by page. Pure.

The command line and the page of the API take an answer whole. A model, or an assistant that
pays for every word, takes it in pages in which everything is bounded and what was left out is
said.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec

from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph.questions.shapes import Json

MAX_LIMIT = 100
MAX_PAGE_CHARS = 40_000
"""Of a page as JSON; at least one item is always shown, in part when it is longer."""
MAX_NESTED = 40
"""Entries shown of any list inside an item, fewer where they are long."""
MAX_NAME_CHARS = 1_000
"""Of any text that is no captured content: ids, names, references."""
MAX_TEXT_CHARS = 2_000
"""Of one captured text, unless less is asked for."""

Item = TypeVar("Item")


class Size(NamedTuple):
    """How much of nested lists and of captured texts is shown."""

    entries: int
    text_chars: int


_SIZES = (Size(MAX_NESTED, MAX_TEXT_CHARS), Size(20, 400), Size(8, 200), Size(3, 100))
"""Largest first: what fits into a page is shown."""


@dataclass(frozen=True, slots=True)
class Texts:
    """How captured texts stand in an answer.

    ``max_chars=None``: as they are, for people. Otherwise as ``{"captured": text, "chars":
    its whole length}``, so that nobody takes data for words of ours, shortened to
    ``max_chars``; 0 withholds every text.
    """

    max_chars: int | None = None

    def one(self, text: str | None) -> Any:
        """One text; None (not captured) stays None."""
        if text is None or self.max_chars is None:
            return text
        if not self.max_chars:
            return {"captured": None, "chars": len(text), "withheld": True}
        return {"captured": text[: self.max_chars], "chars": len(text)}

    def lines(self, lines: Sequence[str]) -> Any:
        """Several lines of one text."""
        return list(lines) if self.max_chars is None else self.one("\n".join(lines))

    @property
    def are_withheld(self) -> bool:
        return self.max_chars == 0


AS_THEY_ARE = Texts()


@dataclass(frozen=True, slots=True)
class Found(Generic[Item]):
    """An answer. ``name`` is the key of its list; no name: there is none.

    ``render`` makes a run of items JSON, so that what each needs is read once for a page.
    """

    head: Json
    name: str = ""
    items: Sequence[Item] = ()
    render: Callable[[Sequence[Item]], list[Json]] = lambda _: []

    def whole(self) -> Json:
        """Head and list, nothing left out."""
        return {**self.head, self.name: self.render(self.items)} if self.name else dict(self.head)


class Paged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a question that gives a list."""

    limit: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_LIMIT, description="At most so many items in this answer.")
    ] = 20
    cursor: Annotated[
        str,
        msgspec.Meta(
            max_length=20,
            description="`next` of the answer before, to read on; empty: from the start.",
        ),
    ] = ""


def page(found: Found[Any], limit: int, cursor: str, max_chars: int = MAX_PAGE_CHARS) -> Json:
    """A part of an answer, bounded, with what was left out said plainly.

    Raises:
        WrongUseError: ``cursor`` is none of ours.
    """
    head: Json = _fitting(found.head, max_chars // 2)
    if not found.name:
        return head
    start, total = _start(cursor), len(found.items)
    shown: list[Json] = []
    room = max_chars - _size(head)
    for whole in found.render(found.items[start : start + limit]):
        item = bounded(whole, _SIZES[0])
        if not shown:
            item = _fitting(whole, room)
        room -= _size(item)
        if shown and room < 0:
            break
        shown.append(item)
    end = start + len(shown)
    return {
        **head,
        found.name: shown,
        "total": total,
        "next": str(end) if end < total else None,
        "says": _said(found.name, start, end, total),
    }


def bounded(value: Any, size: Size) -> Any:
    """JSON in which no list and no text is longer than ``size`` allows; ``<key>_left_out``
    beside a list counts what is not shown, ``chars`` beside a captured text its whole length.
    """
    if isinstance(value, dict):
        kept = {str(key): _bounded_entry(str(key), item, size) for key, item in value.items()}
        for key, item in value.items():
            if isinstance(item, list | tuple) and len(item) > size.entries:
                kept[f"{key}_left_out"] = len(item) - size.entries
        return kept
    if isinstance(value, list | tuple):
        return [bounded(item, size) for item in value[: size.entries]]
    if isinstance(value, str) and len(value) > MAX_NAME_CHARS:
        return f"{value[:MAX_NAME_CHARS]}…"
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _bounded_entry(key: str, item: Any, size: Size) -> Any:
    if key == "captured" and isinstance(item, str):
        return item[: size.text_chars]
    return bounded(item, size)


def _fitting(value: Any, room: int) -> Any:
    """``value`` in the largest size of which its JSON has room, else in the smallest."""
    sized = (bounded(value, size) for size in _SIZES)
    smallest = None
    for smallest in sized:
        if _size(smallest) <= room:
            break
    return smallest


def _start(cursor: str) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdecimal()):
        raise WrongUseError(
            f"{cursor!r} is no cursor; give the `next` of the answer before, or leave it out"
        )
    return int(cursor)


def _said(name: str, start: int, end: int, total: int) -> str:
    if start >= total:
        return f"no {name}" if not total else f"nothing after {start}: there are {total} {name}"
    if start == 0 and end == total:
        return f"all {total} {name}"
    rest = f"; for the rest ask again with cursor {end}" if end < total else ""
    return f"{name} {start + 1} to {end} of {total}{rest}"


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def each(render: Callable[[Item], Json]) -> Callable[[Sequence[Item]], list[Json]]:
    """``render`` for items that need nothing read."""

    def every(items: Iterable[Item]) -> list[Json]:
        return [render(item) for item in items]

    return every
