"""What several views give alike: pages of long lists and shortened texts, whose rest is counted,
and who did something. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from memtrace_collector.api.explorer.view import Parameters
from memtrace_collector.api.questions import Json
from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.questions.shapes import span_json

TEXT_CHARS = 4_000
"""Of one captured text."""
EXCERPT_CHARS = 300
"""Of a captured text in a list."""
_Item = TypeVar("_Item")


class Part(NamedTuple):
    """A page of a list: ``start`` counts from 0."""

    start: int
    size: int
    total: int

    def of(self, items: Sequence[_Item]) -> Sequence[_Item]:
        """Its items."""
        return items[self.start : self.start + self.size]

    def json(self, items: Sequence[Json]) -> Json:
        """``{"items", "start", "size", "total"}``."""
        return {"items": list(items), **self._asdict()}


def part(parameters: Parameters, name: str, total: int, size: int) -> Part:
    """The page of a list that the parameter ``name`` (the place of its first item, from 0) asks
    for; the first page without it, the last one when it lies behind the end.

    Raises:
        WrongUseError: that is no whole number.
    """
    start = number(parameters, name)
    last = max(0, total - 1) // size * size
    return Part(min(start, last), size, total)


def number(parameters: Parameters, name: str) -> int:
    """A parameter that is a whole number; 0 without it.

    Raises:
        WrongUseError: it is none.
    """
    given = parameters.get(name, "")
    if given and not (given.isascii() and given.isdecimal() and len(given) < 16):
        raise WrongUseError(f"the parameter {name} is a whole number, not {given[:40]!r}")
    return int(given or 0)


def text_json(text: str | None, chars: int = TEXT_CHARS) -> Json | None:
    """``{"text", "chars"}``: the beginning of a captured text and its whole length; None when it
    was not captured."""
    return None if text is None else {"text": text[:chars], "chars": len(text)}


def operation_json(operation: Operation) -> Json:
    """Who did something, when and where."""
    return {
        "span": span_json(operation.key),
        "graph_id": operation.graph_id,
        "name": operation.name,
        "step": operation.step,
        "system": operation.system,
        "service": operation.service,
        "time_ns": operation.start_ns,
        "error": operation.error_type,
    }
