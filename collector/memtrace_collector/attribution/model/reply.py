"""What a model may say: closed answers about what it was offered. Everything else is nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memtrace_collector.attribution.model.questions import Rendered
from memtrace_collector.attribution.texts import text

MAX_REPLY_CHARACTERS = 8_000
_FENCE = re.compile(r"^\s*```(?:json)?\s*(.*?)\s*```\s*$", re.DOTALL)


class ReplyError(Exception):
    """The reply is not one of the answers that were offered."""


class Chosen(NamedTuple):
    """The option chosen for one text, by label, and the words that show it."""

    option: str
    quote: str


class Reading(NamedTuple):
    """What a reply says on the sentence asked about.

    ``says``: True (the expected option, with a quote), False (another or none), None (unclear,
    or what was said on the control text shows that the reply cannot be trusted).
    """

    says: bool | None
    quote: str
    why: str


def read(content: str, asked: Rendered, needed: frozenset[str]) -> Reading:
    """The answer of a reply.

    Args:
        content: the reply as it came.
        asked: what was offered.
        needed: words of which the quote for a yes must have one; empty: any words will do.

    Raises:
        ReplyError: it is not JSON of the asked form, or names what was not offered.
    """
    chosen = _chosen(content, asked)
    control, said = chosen[asked.control], chosen[asked.unit]
    if control.option != asked.controlled or chosen[asked.blank].option in asked.options:
        return Reading(None, "", "control failed")
    if said.option == asked.unclear:
        return Reading(None, "", "unclear")
    if said.option != asked.expected:
        return Reading(False, said.quote, "no")
    unit = asked.texts[asked.unit]
    if not _occurs(said.quote, unit):
        return Reading(None, "", "quote not found")
    if not _shows(said.quote, needed):
        return Reading(None, "", "quote beside the point")
    return Reading(True, said.quote, "yes")


def read_others(content: str) -> list[object]:
    """The proposed other answers, unchecked.

    Raises:
        ReplyError: it is not JSON of the asked form.
    """
    found = _object(content).get("others")
    if not isinstance(found, list):
        raise ReplyError("no list of others")
    return list(found)


def _chosen(content: str, asked: Rendered) -> Mapping[str, Chosen]:
    entries = _object(content).get("answers")
    if not isinstance(entries, list) or len(entries) != len(asked.texts):
        raise ReplyError("not one answer per text")
    offered = {*asked.options, asked.none, asked.unclear}
    found: dict[str, Chosen] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise ReplyError("an answer is no object")
        label, option, quote = entry.get("text"), entry.get("option"), entry.get("quote", "")
        if not isinstance(label, str) or label not in asked.texts or label in found:
            raise ReplyError("an answer about what was not asked")
        if not isinstance(option, str) or option not in offered:
            raise ReplyError("an option that was not offered")
        found[label] = Chosen(option, quote if isinstance(quote, str) else "")
    return found


def _object(content: str) -> dict[str, Any]:
    if len(content) > MAX_REPLY_CHARACTERS:
        raise ReplyError("too long")
    fenced = _FENCE.match(content)
    try:
        found = json.loads(fenced[1] if fenced else content)
    except (ValueError, RecursionError):
        raise ReplyError("not JSON") from None
    if not isinstance(found, dict):
        raise ReplyError("not an object")
    return found


def _plain(content: str) -> str:
    return " ".join(text.normalise(content).casefold().split()).strip(" .,;:!?\"'")


def _occurs(quote: str, content: str) -> bool:
    wanted = _plain(quote)
    return bool(wanted) and wanted in _plain(content)


def _shows(quote: str, needed: frozenset[str]) -> bool:
    return not needed or bool(text.content_tokens(quote) & needed)
