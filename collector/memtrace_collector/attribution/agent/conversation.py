"""The messages of one exploration, in the form of chat completions, and their size."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from memtrace_collector.attribution.model.budget import estimate
from memtrace_collector.graph.questions.shapes import Json

KEPT_RESULTS = 8
"""Answers to questions that stay whole; older ones are shortened, and can be asked for again."""
MAX_CALLS = 16
"""Of one reply that are looked at."""
MAX_SAID, MAX_ARGUMENTS, MAX_ID = 4_000, 8_000, 100
"""Characters of a reply: an endpoint may send more than it was allowed."""
_SHORT_CHARS = 300
_LEFT_OUT = "… (left out to save room; ask again if needed)"


class Call(NamedTuple):
    """A function that the model calls; ``arguments``: None when they are no JSON object of
    at most :data:`MAX_ARGUMENTS` characters."""

    id: str
    name: str
    arguments: Json | None


class Turn(NamedTuple):
    """What the model said and which functions it called."""

    said: str
    calls: tuple[Call, ...]

    def as_text(self) -> str:
        """For the transcript."""
        called = [f"{call.name}({json.dumps(call.arguments)})" for call in self.calls]
        return "\n".join(filter(None, (self.said, *called)))


class Conversation:
    """Grows by a turn and its results; says what was new since it was last read."""

    def __init__(self, instructions: str, task: str) -> None:
        self._messages: list[Json] = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": task},
        ]
        self._new = [task]

    def messages(self) -> list[Json]:
        """To send: the latest results whole, older ones shortened."""
        results = [i for i, m in enumerate(self._messages) if m["role"] == "tool"]
        old = set(results[:-KEPT_RESULTS])
        return [
            {**message, "content": _shortened(message["content"])} if i in old else message
            for i, message in enumerate(self._messages)
        ]

    def size(self) -> int:
        """Tokens of what would be sent, about."""
        return sum(estimate(json.dumps(message)) for message in self.messages())

    def take_new(self) -> list[str]:
        """What the model was told since this was last asked."""
        told, self._new = self._new, []
        return told

    def said(self, turn: Turn) -> None:
        message: Json = {"role": "assistant", "content": turn.said}
        if turn.calls:
            message["tool_calls"] = [_call_json(call) for call in turn.calls]
        self._messages.append(message)

    def answer(self, call: Call, content: str) -> None:
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        self._new.append(content)

    def tell(self, content: str) -> None:
        self._messages.append({"role": "user", "content": content})
        self._new.append(content)


def turn_of(completion: Any) -> Turn:
    """What counts of a reply, of whatever form a compatible endpoint sent."""
    choices = getattr(completion, "choices", None)
    message = getattr(choices[0], "message", None) if choices else None
    said = getattr(message, "content", None)
    calls = getattr(message, "tool_calls", None)
    listed = calls[:MAX_CALLS] if isinstance(calls, list) else ()
    found = [_call(n, each) for n, each in enumerate(listed)]
    return Turn(said[:MAX_SAID] if isinstance(said, str) else "", tuple(filter(None, found)))


def _call(number: int, called: Any) -> Call | None:
    function = getattr(called, "function", None)
    name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
    if not isinstance(name, str):
        return None
    identity = getattr(called, "id", None)
    return Call(str(identity or f"call-{number}")[:MAX_ID], name[:MAX_ID], _object(arguments))


def _object(arguments: object) -> Json | None:
    if isinstance(arguments, str) and len(arguments) > MAX_ARGUMENTS:
        return None
    try:
        found = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _call_json(call: Call) -> Json:
    arguments = json.dumps(call.arguments or {})
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _shortened(content: str) -> str:
    return content if len(content) <= _SHORT_CHARS else f"{content[:_SHORT_CHARS]}{_LEFT_OUT}"
