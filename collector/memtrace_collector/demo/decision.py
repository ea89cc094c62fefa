"""The stand-in's memory manager: ADD, UPDATE, DELETE or NONE for each new fact."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memtrace_collector.demo.language import content_stems, overlap

PROMPT = "You are a smart memory manager"
"""What the prompt by which mem0 1.x asks for a decision begins with."""
_FENCED = re.compile(r"```\s*(\[.*?\])\s*```", re.DOTALL)
_RETRACTION = re.compile(r"\b(no longer|not any ?more|cancel(?:led|s)?|stopped)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
SAME = 0.8
"""Two texts that share this much of their stems say the same."""
RELATED = 0.55
"""From here on a text with other numbers is a newer state of the same thing."""


@dataclass(frozen=True, slots=True)
class Memory:
    """An existing memory as mem0 shows it: a small integer id and its text."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of the answer that mem0 expects."""

    id: str
    text: str
    event: str
    old_memory: str | None = None

    def to_json(self) -> dict[str, str]:
        entry = {"id": self.id, "text": self.text, "event": self.event}
        return entry if self.old_memory is None else {**entry, "old_memory": self.old_memory}


def requested(prompt: str) -> tuple[list[Memory], list[str]]:
    """The memories and the new facts about which mem0 1.x asks."""
    lists = [ast.literal_eval(block) for block in _FENCED.findall(prompt)]
    shown = lists[-2] if len(lists) > 1 else []
    memories = [Memory(str(item["id"]), str(item["text"])) for item in shown]
    return memories, [str(fact) for fact in lists[-1]]


def decide(memories: Sequence[Memory], facts: Sequence[str]) -> list[Action]:
    """What to do with ``facts`` given ``memories``; untouched memories are listed as NONE."""
    touched: dict[str, Action] = {}
    added: list[Action] = []
    next_id = max((int(memory.id) for memory in memories if memory.id.isdigit()), default=-1) + 1
    for fact in facts:
        action = _against(memories, fact)
        if action is None:
            added.append(Action(str(next_id + len(added)), fact, "ADD"))
        elif action.id not in touched:
            touched[action.id] = action
    kept = [touched.get(memory.id, Action(memory.id, memory.text, "NONE")) for memory in memories]
    return kept + added


def _against(memories: Sequence[Memory], fact: str) -> Action | None:
    stems = set(content_stems(fact))
    scored = [(overlap(stems, set(content_stems(memory.text))), memory) for memory in memories]
    if not scored:
        return None
    score, memory = max(scored, key=lambda pair: pair[0])
    if score >= RELATED and _RETRACTION.search(fact):
        return Action(memory.id, memory.text, "DELETE")
    if score >= SAME and _numbers(fact) == _numbers(memory.text):
        return Action(memory.id, memory.text, "NONE")
    if score >= RELATED and _numbers(fact) != _numbers(memory.text):
        return Action(memory.id, fact, "UPDATE", old_memory=memory.text)
    return None


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)
