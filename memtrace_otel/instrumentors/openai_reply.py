"""What came back from an OpenAI-compatible API: a whole response, or the chunks of a stream.

Objects of the ``openai`` package and plain JSON are read alike. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

MAX_CHOICE_CHARS: Final = 1_000_000
"""Kept of one choice; the rest is left out, and the choice is clipped."""
MAX_PARTS: Final = 256
"""Choices of one reply, and tool calls of one choice; further ones are left out."""
_FINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for; ``arguments`` is text, usually JSON."""

    name: str
    arguments: str


@dataclass(slots=True)
class Choice:
    """One of the alternatives of a reply, as far as it was seen."""

    parts: list[str] = field(default_factory=list)
    calls: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    finished: bool = False
    chars: int = 0
    clipped: bool = False

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(ToolCall(name, "".join(parts)) for name, parts in self.calls.values())

    def add_text(self, text: object) -> None:
        if isinstance(text, str) and text and self._room(text):
            self.parts.append(text)

    def add_call(self, position: int, name: object, arguments: object) -> None:
        if position not in self.calls and len(self.calls) >= MAX_PARTS:
            self.clipped = True
            return
        known, parts = self.calls.get(position, ("", []))
        self.calls[position] = (known or (name if isinstance(name, str) else ""), parts)
        if isinstance(arguments, str) and arguments and self._room(arguments):
            parts.append(arguments)

    def _room(self, text: str) -> bool:
        self.chars += len(text)
        self.clipped = self.clipped or self.chars > MAX_CHOICE_CHARS
        return not self.clipped


class Reply:
    """A reply as far as it was seen.

    Attributes:
        id: the response id; empty until it is seen.
        model: the model that answered.
        choices: by index.
        queries: what the API's own file search looked for.
    """

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.choices: dict[int, Choice] = {}
        self.queries: list[str] = []

    def read(self, response: object) -> None:
        """Take a whole response in: a chat completion or a response object."""
        self._head(response)
        for choice in _items(get(response, "choices")):
            self._completed_choice(choice)
        if get(response, "object") == "response" or get(response, "output") is not None:
            self._output(response)

    def read_chunk(self, chunk: object) -> None:
        """Take one event of a stream in."""
        kind = get(chunk, "type")
        if isinstance(kind, str) and get(chunk, "choices") is None:
            self._event(kind, chunk)
            return
        self._head(chunk)
        for choice in _items(get(chunk, "choices")):
            seen = self._choice(get(choice, "index"))
            _add_delta(seen, get(choice, "delta"))
            seen.finished = seen.finished or bool(get(choice, "finish_reason"))

    def _head(self, source: object) -> None:
        self.id = self.id or _string(get(source, "id"))
        self.model = self.model or _string(get(source, "model"))

    def _choice(self, index: object) -> Choice:
        at = index if isinstance(index, int) else 0
        if at not in self.choices and len(self.choices) >= MAX_PARTS:
            return Choice()
        return self.choices.setdefault(at, Choice())

    def _completed_choice(self, choice: object) -> None:
        seen = self._choice(get(choice, "index"))
        message = get(choice, "message")
        seen.add_text(get(message, "content") or get(message, "refusal"))
        _add_calls(seen, message)
        seen.finished = True

    def _output(self, response: object) -> None:
        seen = Choice(finished=get(response, "status") not in ("queued", "in_progress"))
        for position, item in enumerate(_items(get(response, "output"))):
            kind = get(item, "type")
            if kind == "message":
                for part in _items(get(item, "content")):
                    seen.add_text(get(part, "text") or get(part, "refusal"))
            elif kind in ("function_call", "custom_tool_call"):
                arguments = get(item, "arguments") or get(item, "input")
                seen.add_call(position, get(item, "name"), arguments)
            elif kind == "file_search_call":
                self.queries += filter(None, map(_string, _items(get(item, "queries"))))
        self.choices[0] = seen

    def _event(self, kind: str, event: object) -> None:
        response = get(event, "response")
        if response is not None:
            self._head(response)
            if kind in _FINAL:
                self._output(response)
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            self._choice(0).add_text(get(event, "delta"))
        elif kind == "response.output_item.added":
            item = get(event, "item")
            if get(item, "type") == "function_call":
                self._choice(0).add_call(_position(event), get(item, "name"), None)
        elif kind == "response.function_call_arguments.delta":
            self._choice(0).add_call(_position(event), None, get(event, "delta"))


def _add_delta(choice: Choice, delta: object) -> None:
    choice.add_text(get(delta, "content"))
    choice.add_text(get(delta, "refusal"))
    _add_calls(choice, delta)


def _add_calls(choice: Choice, message: object) -> None:
    for position, call in enumerate(_items(get(message, "tool_calls"))):
        index = get(call, "index")
        function = get(call, "function") or get(call, "custom")
        arguments = get(function, "arguments") or get(function, "input")
        at = index if isinstance(index, int) else position
        choice.add_call(at, get(function, "name"), arguments)
    function = get(message, "function_call")
    if function is not None:
        choice.add_call(0, get(function, "name"), get(function, "arguments"))


def _position(event: object) -> int:
    index = get(event, "output_index")
    return index if isinstance(index, int) else 0


def get(source: object, name: str) -> object:
    """A field of an API object, or of the JSON it was made from; ``None`` when absent."""
    if isinstance(source, Mapping):
        return source.get(name)
    return getattr(source, name, None)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, (list, tuple)) else ()
