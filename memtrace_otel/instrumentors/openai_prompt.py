"""What a request to an OpenAI-compatible API says: its messages, as texts with roles. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

CHAT_PATH: Final = "/chat/completions"
RESPONSES_PATH: Final = "/responses"

USER: Final = "user"
ASSISTANT: Final = "assistant"
TOOL: Final = "tool"
SYSTEM: Final = "system"
_ROLES = {
    "user": USER,
    "assistant": ASSISTANT,
    "tool": TOOL,
    "function": TOOL,
    "system": SYSTEM,
    "developer": SYSTEM,
}
_TOOL_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt; ``role`` is user, assistant, tool or system."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request. ``previous_response`` names the response whose conversation it continues."""

    model: str = ""
    messages: tuple[Message, ...] = ()
    conversation: str = ""
    previous_response: str = ""

    @property
    def question(self) -> int | None:
        """Index of the last user message."""
        users = (i for i, message in enumerate(self.messages) if message.role == USER)
        return max(users, default=None)


def is_answerable(path: str) -> bool:
    """Whether requests to this path ask a model for an answer."""
    return path.rstrip("/").endswith((CHAT_PATH, RESPONSES_PATH))


def read(path: str, body: object) -> Prompt:
    """The prompt in a request body; what has an unknown shape is left out.

    Parts of a message that are no text (images, audio, files) are not read.
    """
    if not isinstance(body, Mapping):
        return Prompt()
    if path.rstrip("/").endswith(CHAT_PATH):
        messages = [_chat_message(item) for item in _items(body.get("messages"))]
    else:
        messages = [_message(SYSTEM, body.get("instructions")), *_input(body.get("input"))]
    return Prompt(
        model=_string(body.get("model")),
        messages=tuple(message for message in messages if message is not None),
        conversation=_identifier(body.get("conversation")),
        previous_response=_string(body.get("previous_response_id")),
    )


def _chat_message(item: object) -> Message | None:
    if not isinstance(item, Mapping):
        return None
    return _message(_string(item.get("role")), item.get("content"))


def _input(value: object) -> list[Message | None]:
    if isinstance(value, str):
        return [_message(USER, value)]
    return [_input_item(item) for item in _items(value)]


def _input_item(item: object) -> Message | None:
    if not isinstance(item, Mapping):
        return None
    if item.get("type") in _TOOL_OUTPUTS:
        return _message(TOOL, item.get("output"))
    return _message(_string(item.get("role")), item.get("content"))


def _message(role: str, content: object) -> Message | None:
    text = text_of(content)
    return Message(_ROLES[role], text) if role in _ROLES and text.strip() else None


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the text parts joined by line breaks."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, map(_part_text, _items(content))))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    return _string(part.get("text")) or _string(part.get("refusal"))


def _identifier(value: object) -> str:
    return _string(value.get("id") if isinstance(value, Mapping) else value)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else ()
