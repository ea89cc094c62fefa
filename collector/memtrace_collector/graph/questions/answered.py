"""What a question gives: a head and a list that can be read whole or page by page. Pure.

The command line and the page of the API take an answer whole. A model, or an assistant that
pays for every word, takes it in pages in which everything is bounded and what was left out is
said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph.questions.shapes import Json

MAX_LIMIT = 100
MAX_PAGE_CHARS = 40_000
"""Of a page as JSON; at least one item is always shown."""
MAX_NESTED = 40
"""Entries shown of any list inside an item."""
MAX_NAME_CHARS = 1_000
"""Of any text that is no captured content: ids, names, references."""
MAX_TEXT_CHARS = 2_000
"""Of one captured text, unless less is asked for."""

Item = TypeVar("Item")


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


def page(found: Found[Any], limit: int, cursor: str) -> Json:
    """A part of an answer, bounded, with what was left out said plainly.

    Raises:
        WrongUseError: ``cursor`` is none of ours.
    """
    head: Json = bounded(found.head)
    if not found.name:
        return head
    start, total = _start(cursor), len(found.items)
    shown: list[Json] = []
    size = len(_text(head))
    for item in bounded(found.render(found.items[start : start + limit]), limit):
        size += len(_text(item))
        if shown and size > MAX_PAGE_CHARS:
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


def bounded(value: Any, most: int = MAX_NESTED) -> Any:
    """JSON in which no list is longer than ``most`` (those inside it: :data:`MAX_NESTED`) and
    no text than its bound; ``<key>_left_out`` beside a list counts what is not shown."""
    if isinstance(value, dict):
        kept = {str(key): _bounded_entry(key, item) for key, item in value.items()}
        for key, item in value.items():
            if isinstance(item, list | tuple) and len(item) > MAX_NESTED:
                kept[f"{key}_left_out"] = len(item) - MAX_NESTED
        return kept
    if isinstance(value, list | tuple):
        return [bounded(item) for item in value[:most]]
    if isinstance(value, str) and len(value) > MAX_NAME_CHARS:
        return f"{value[:MAX_NAME_CHARS]}…"
    return value


def _bounded_entry(key: object, item: Any) -> Any:
    # captured texts have a bound of their own
    return item if key == "captured" else bounded(item)


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


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def each(render: Callable[[Item], Json]) -> Callable[[Sequence[Item]], list[Json]]:
    """``render`` for items that need nothing read."""

    def every(items: Iterable[Item]) -> list[Json]:
        return [render(item) for item in items]

    return every
