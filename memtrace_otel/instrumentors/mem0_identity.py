"""What mem0's values are called in lineage: pure functions.

* A record is ``mem:mem0:<uuid>`` in both generations; its version digests the stored text
  (``payload["data"]``). In 2.x ``expiration_date`` is its state, as it decides whether the
  record can still be found.
* The graph is the scope's: user, else agent, else run.
* A message's own ``id`` or ``message_id`` is a declared id; otherwise its content digest is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import NamedTuple

from memtrace_otel import references
from memtrace_otel.tracer import owner_graph_id
from memtrace_otel.variables import Variable

SYSTEM = "mem0"
SCOPES = (("user_id", "user"), ("agent_id", "agent"), ("run_id", "run"))
_MESSAGE_ID_KEYS = ("id", "message_id")
_MESSAGE_TIME_KEYS = ("timestamp", "time", "created_at")
_METADATA_TIME_KEYS = ("timestamp", "created_at", "date", "observation_date")
_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}
_MILLISECONDS_FROM = 100_000_000_000
"""An epoch time at or above this (year 5138 in seconds) is in milliseconds."""


class Message(NamedTuple):
    """One message of an ``add``: ``time`` and ``role`` where they are known."""

    variable: Variable
    time: datetime | None
    role: str | None


def graph_ids(owners: Mapping[str, object]) -> list[str]:
    """The graphs that a scope names: user, else agent, else run. Several only for ``{"in": …}``."""
    for key, kind in SCOPES:
        ids = list(_scope_values(owners.get(key)))
        if ids:
            return [owner_graph_id(kind, value.strip()) for value in ids]
    return []


def scope_of(arguments: Mapping[str, object]) -> dict[str, object]:
    """The scope among the arguments of a public method: ``filters`` first, then top level."""
    filters = arguments.get("filters")
    owners = dict(filters) if isinstance(filters, Mapping) else {}
    owners.update({key: arguments[key] for key, _ in SCOPES if arguments.get(key)})
    return owners


def messages_of(messages: object, metadata: object) -> list[Message]:
    """The messages given to ``add``: a text, one dict or a list; what is malformed is left out."""
    if isinstance(messages, (str, Mapping)):
        messages = [messages]
    if not isinstance(messages, (list, tuple)):
        return []
    given = _first_time(metadata if isinstance(metadata, Mapping) else {}, _METADATA_TIME_KEYS)
    return [message for item in messages if (message := _message(item, given))]


def shown_message(row: object) -> Variable | None:
    """A message of the session that mem0 kept: it forgets declared ids."""
    content = row.get("content") if isinstance(row, Mapping) else None
    return references.message(content) if isinstance(content, str) and content else None


def record(record_id: object, payload: Mapping[str, object], major: int) -> Variable:
    """The version of a stored record. ``payload`` has the text under ``data`` or ``memory``."""
    text = payload["data"] if "data" in payload else payload.get("memory")
    expires = payload.get("expiration_date") if major >= 2 else None
    state = {"expiration_date": str(expires)} if expires else None
    return references.memory(
        "" if text is None else text, str(record_id), system=SYSTEM, state=state
    )


def _message(item: object, given: datetime | None) -> Message | None:
    if isinstance(item, str):
        return Message(references.message(item), given, "user")
    if not isinstance(item, Mapping) or item.get("content") is None:
        return None
    declared = next((item[key] for key in _MESSAGE_ID_KEYS if item.get(key)), None)
    identifier = str(declared) if isinstance(declared, (str, int)) else None
    return Message(
        references.message(item["content"], identifier),
        _first_time(item, _MESSAGE_TIME_KEYS) or given,
        _ROLES.get(str(item.get("role"))),
    )


def _scope_values(condition: object) -> Iterator[str]:
    if isinstance(condition, (str, int)):
        if condition not in ("", "*"):
            yield str(condition)
    elif isinstance(condition, Mapping):
        one, several = condition.get("eq"), condition.get("in")
        for value in several if isinstance(several, (list, tuple)) else (one,):
            if isinstance(value, (str, int)):
                yield str(value)


def _first_time(values: Mapping[str, object], keys: tuple[str, ...]) -> datetime | None:
    return next((time for key in keys if (time := parse_time(values.get(key)))), None)


def parse_time(value: object) -> datetime | None:
    """ISO 8601 text, or seconds or milliseconds since the epoch; without an offset it is UTC."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, (int, float)):
            seconds = value / 1000 if value >= _MILLISECONDS_FROM else value
            return datetime.fromtimestamp(seconds, timezone.utc)
        if isinstance(value, str):
            text = value.strip()
            iso = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
            return parse_time(datetime.fromisoformat(iso))
    except (ValueError, OverflowError, OSError):
        return None
    return None
