"""Which tool calls of a model are memory operations, and what they ask for. Pure.

Where the model decides what to save or what to search for, its call authors that text
(decision table, principle P6): a search's text is a query, what is to be saved is a fact.
Names are all there is to go by; the patterns below cover the memory tools of Letta, LangMem,
the MCP memory servers and the usual names of hand-made ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum

from memtrace_otel.instrumentors.openai_reply import ToolCall


class Purpose(Enum):
    READ = "read"
    WRITE = "write"


_MEMORY = re.compile(
    r"memor|knowledge|docs?(?:$|[^a-z])|document|archiv|conversation|chat_histor|notes?(?:$|[^a-z])"
    r"|facts?(?:$|[^a-z])|recall|remember|retriev|context|observation|entit|relations?"
    r"|nodes?(?:$|[^a-z])|(?:^|[^a-z])(?:graph|vector|rag|bio|file_search)"
)
_WRITES = re.compile(
    r"(?:^|[^a-z])(?:add|append|bio|create|insert|manage|put|record|remember|replace|save|set"
    r"|store|take|update|upsert|write)"
)
_READS = re.compile(
    r"(?:^|[^a-z])(?:ask|fetch|file|find|get|load|look|query|rag|read|recall|retriev|search)|search"
)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_QUERY_KEYS = ("query", "queries", "q", "question", "search_query", "text", "input", "keywords")
_FACT_KEYS = (
    "content",
    "contents",
    "memory",
    "memories",
    "fact",
    "facts",
    "new_content",
    "text",
    "note",
    "observations",
    "data",
    "value",
    "message",
)


def purpose(name: str) -> Purpose | None:
    """What a tool does with memory, judged by its name; ``None``: nothing."""
    words = _WORD_START.sub("_", name).lower().replace("-", "_")
    if not _MEMORY.search(words):
        return None
    if _WRITES.search(words):
        return Purpose.WRITE
    return Purpose.READ if _READS.search(words) else None


def texts(call: ToolCall, wanted: Purpose) -> list[object]:
    """What the call searches for or saves: texts, else its arguments as one JSON object."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return [call.arguments] if call.arguments.strip() else []
    if not isinstance(arguments, Mapping):
        return _texts(arguments)
    for key in _QUERY_KEYS if wanted is Purpose.READ else _FACT_KEYS:
        found = _texts(arguments.get(key))
        if found:
            return found
    strings = [value for value in arguments.values() if isinstance(value, str) and value.strip()]
    if len(strings) == 1:
        return [strings[0]]
    return [dict(arguments)] if arguments else []


def _texts(value: object) -> list[object]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str) and item.strip()]
