"""The stand-in's planted faults: where it goes wrong on purpose, and how.

A fault is a table entry, matched on the content of the call it is meant for::

    {"call": "extract", "when": TEXT, "drop": [TEXT, …] or "replace": [OLD, NEW]}
    {"call": "decide", "when": TEXT, "memory": TEXT, "event": "UPDATE" | "DELETE", "text": TEXT}
    {"call": "answer", "when": TEXT, "reply": TEXT}
    {"call": "embed", "when": TEXT, "as_if": TEXT}

``when`` must occur in what the call is about: the conversation, the new facts, the question, or
the text to embed. ``drop`` removes the facts that contain one of the texts; ``replace`` alters
them. A wrong decision concerns the existing memory that contains ``memory``; without ``text``, an
UPDATE overwrites it with the very fact that contains ``when``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memtrace_collector.demo.decision import Action, Memory

Fault = Mapping[str, Any]


class FaultTable:
    """The faults of one run; without entries the stand-in makes none."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._faults = tuple(faults)

    def facts(self, conversation: str, facts: list[str]) -> list[str]:
        """``facts`` as a model that goes wrong on ``conversation`` would extract them."""
        for fault in self._matching("extract", conversation):
            old, new = fault.get("replace", ("", ""))
            facts = [fact.replace(old, new) if old else fact for fact in facts]
            facts = [fact for fact in facts if not any(d in fact for d in fault.get("drop", ()))]
        return facts

    def actions(
        self, memories: Sequence[Memory], facts: Sequence[str], actions: list[Action]
    ) -> list[Action]:
        """``actions`` with the wrong choice among them, when its memory was shown."""
        for fault in self._matching("decide", "\n".join(facts)):
            victim = next((m for m in memories if fault["memory"] in m.text), None)
            if victim is not None:
                actions = _choose_wrongly(fault, victim, facts, actions)
        return actions

    def reply(self, question: str, reply: str) -> str:
        """``reply``, or the wrong one planted for ``question``."""
        return next((fault["reply"] for fault in self._matching("answer", question)), reply)

    def embedded_text(self, text: str) -> str:
        """``text``, or the text whose embedding is returned in its place."""
        return next((fault["as_if"] for fault in self._matching("embed", text)), text)

    def _matching(self, call: str, content: str) -> list[Fault]:
        return [f for f in self._faults if f["call"] == call and f["when"] in content]


def _choose_wrongly(
    fault: Fault, victim: Memory, facts: Sequence[str], actions: list[Action]
) -> list[Action]:
    cause = next(fact for fact in facts if fault["when"] in fact)
    if fault["event"] == "DELETE":
        wrong = Action(victim.id, victim.text, "DELETE")
        return [wrong if action.id == victim.id else action for action in actions]
    wrong = Action(victim.id, fault.get("text", cause), "UPDATE", old_memory=victim.text)
    others = [action for action in actions if action.text != cause]
    return [wrong if action.id == victim.id else action for action in others]
