"""What the model told mem0, read exactly as mem0 reads it. Pure.

mem0 swallows a reply that it cannot parse and goes on with nothing; these functions raise
instead, so that the operation to which the reply belongs can say that it failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

EVENTS = {"ADD": "ADD", "UPDATE": "UPDATE", "DELETE": "DELETE", "NONE": "NOOP"}


class Action(NamedTuple):
    """One entry of a 1.x decision. ``shown_id`` is the small integer that the model saw."""

    action: str
    text: str
    shown_id: str | None


class Extracted(NamedTuple):
    """One entry of a 2.x extraction. ``linked`` holds small integers that the model saw."""

    text: str
    linked: tuple[str, ...]


class UnreadableReplyError(ValueError):
    """The model's reply is not what mem0 asked for; mem0 went on as if it were empty."""


class ReplyReader:
    """Reads replies with the library's own helpers.

    Args:
        utils: the module ``mem0.memory.utils`` of the installed version.
    """

    def __init__(self, utils: ModuleType) -> None:
        self._strip: Callable[[str], str] = utils.remove_code_blocks
        self._find: Callable[[str], str] | None = getattr(utils, "extract_json", None)
        self._normalize: Callable[[Any], list[str]] = getattr(utils, "normalize_facts", list)

    def text(self, reply: object) -> str:
        """A reply as the library uses it when it wants prose."""
        return self._strip(reply) if isinstance(reply, str) else ""

    def facts(self, reply: object) -> list[str]:
        """The facts of a 1.x extraction, in order."""
        body = self._body(reply)
        if body is None:
            return []
        if not isinstance(body, Mapping) or "facts" not in body:
            raise UnreadableReplyError("the extraction has no list of facts")
        return [str(fact) for fact in self._normalize(body["facts"])]

    def actions(self, reply: object) -> list[Action]:
        """The entries of a 1.x decision, in order, without those whose event mem0 ignores."""
        entries = self._entries(reply)
        return [
            Action(
                EVENTS[entry["event"]],
                entry["text"] if isinstance(entry.get("text"), str) else "",
                entry["id"] if isinstance(entry.get("id"), str) else None,
            )
            for entry in entries
            if isinstance(entry.get("event"), str) and entry["event"] in EVENTS
        ]

    def extracted(self, reply: object) -> list[Extracted]:
        """The entries of a 2.x extraction that have a text, in order."""
        return [
            Extracted(entry["text"], _linked(entry.get("linked_memory_ids")))
            for entry in self._entries(reply)
            if isinstance(entry.get("text"), str) and entry["text"]
        ]

    def _entries(self, reply: object) -> list[Mapping[str, Any]]:
        body = self._body(reply)
        if body is None:
            return []
        entries = body.get("memory", []) if isinstance(body, Mapping) else None
        if not isinstance(entries, list):
            raise UnreadableReplyError("the reply has no list of memories")
        return [entry for entry in entries if isinstance(entry, Mapping)]

    def _body(self, reply: object) -> object:
        """The reply's JSON; ``None`` when it is empty."""
        if not isinstance(reply, str):
            raise UnreadableReplyError(f"the reply is no text but {type(reply).__name__}")
        stripped = self._strip(reply)
        if not stripped.strip():
            return None
        try:
            return json.loads(stripped, strict=False)
        except json.JSONDecodeError:
            if self._find is None:
                raise
            return json.loads(self._find(reply), strict=False)


def _linked(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, (list, tuple)) else ()
