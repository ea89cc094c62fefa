"""How the stand-in uses the tools that an agent offers it: which it calls, and with what."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memtrace_collector.bench.stand_in import faulty

if TYPE_CHECKING:
    from memtrace_collector.bench.stand_in.model import StandIn

_SAVE = re.compile(r"save|store|remember|manage|write|upsert|put", re.IGNORECASE)
_SEARCH = re.compile(r"search|recall|find|retrieve|look", re.IGNORECASE)
DONE = "Noted."


def calls(model: StandIn, body: Mapping[str, Any], response_id: str) -> list[dict[str, Any]]:
    """The tool calls that the model makes at this point, in OpenAI's form; empty: it speaks.

    To a turn of the dialogue it saves each fact of it; to the question it searches once. After
    a tool's result it speaks.
    """
    tools = [tool["function"] for tool in body.get("tools") or ()]
    last = body["messages"][-1]
    if not tools or last.get("role") != "user":
        return []
    text = text_of(last)
    if model.case.question.text in text:
        return _search(model, tools, response_id)
    return _save(model, tools, text, response_id)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a chat message, also where its content is a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def _search(
    model: StandIn, tools: Sequence[Mapping[str, Any]], response_id: str
) -> list[dict[str, Any]]:
    tool = _named(tools, _SEARCH)
    planted = model.plantings.fires("not_searched")
    if tool is None or planted:
        if planted:
            model.effect(planted, response_id)
        return []
    query = model.case.question.text
    planted = model.plantings.fires("query_lost")
    if planted:
        model.effect(planted, response_id)
        query = planted.detail["new"]
    return [_call(tool, query, f"call-{response_id}-0")]


def _save(
    model: StandIn, tools: Sequence[Mapping[str, Any]], text: str, response_id: str
) -> list[dict[str, Any]]:
    tool = _named(tools, _SAVE)
    said = [m for m in model.case.messages if " ".join(m.text.split()) in " ".join(text.split())]
    if tool is None or not said:
        return []
    message = max(said, key=lambda m: len(m.text))
    texts = [fact.text for fact in model.oracle.facts(message.id)]
    for planted in model.plantings.of("did_not_save"):
        if planted.message == message.id and texts:
            model.effect(planted, response_id)
            return []
    for planted in model.plantings.of("saved_wrongly"):
        if planted.message == message.id:
            texts = faulty.changed_facts(model, planted, texts, response_id)
    return [_call(tool, t, f"call-{response_id}-{i}") for i, t in enumerate(texts)]


def _named(
    tools: Sequence[Mapping[str, Any]], pattern: re.Pattern[str]
) -> Mapping[str, Any] | None:
    return next((tool for tool in tools if pattern.search(str(tool["name"]))), None)


def _call(tool: Mapping[str, Any], text: str, identifier: str) -> dict[str, Any]:
    properties = tool.get("parameters", {}).get("properties", {})
    texts = [name for name, kind in properties.items() if kind.get("type") == "string"]
    required = tool.get("parameters", {}).get("required", texts)
    name = next((n for n in texts if n in required), texts[0] if texts else "text")
    arguments = json.dumps({name: text}, ensure_ascii=False)
    function = {"name": tool["name"], "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function}
