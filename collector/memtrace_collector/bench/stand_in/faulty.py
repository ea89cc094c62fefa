"""The faults that a model itself can make, applied to what the stand-in would have said.

Every function returns what it was given where nothing is planted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.stand_in.oracle import Reading
from memtrace_collector.bench.stand_in.replies import DECLINES, Said, judged, other_line
from memtrace_collector.bench.stand_in.writing import negated
from memtrace_collector.demo.decision import Action, Memory
from memtrace_collector.demo.language import sentences

if TYPE_CHECKING:
    from memtrace_collector.bench.stand_in.model import StandIn

CHANGED = ("value_changed", "negated", "owner_swapped", "saved_wrongly")
"""Kinds whose ``detail`` gives the ``old`` and ``new`` words of the fact, and the ``reply``."""
_KEPT_WORDS = 12
"""Words of each text that a summary keeps."""


def facts(model: StandIn, message: Message, texts: list[str]) -> list[str]:
    """The extraction's faults; ``texts``: what is rightly extracted of ``message``."""
    planted = _planted_for(model, "left_out", message.id)
    if planted and texts:
        model.effect(planted)
        return []
    for kind in CHANGED[:3]:
        planted = _planted_for(model, kind, message.id)
        if planted:
            texts = changed_facts(model, planted, texts)
    planted = _planted_for(model, "made_up", message.id)
    if planted:
        invented = planted.detail["text"]
        model.oracle.wrong(invented, message.id, planted.detail["reply"], wins=True)
        model.effect(planted)
        texts = [*texts, invented]
    return texts


def changed_facts(
    model: StandIn, planted: Planting, texts: Sequence[str], response_id: str = ""
) -> list[str]:
    """``texts`` with the planted change in those that carry the evidence."""
    result = []
    for text in texts:
        if not model.oracle.carried_by(text):
            result.append(text)
            continue
        negative = planted.kind == "negated"
        wrong = negated(text) if negative else _replaced(text, planted)
        if wrong != text:
            reply = planted.detail.get("reply") or wrong
            model.oracle.wrong(wrong, planted.message, reply)
            model.effect(planted, response_id)
        result.append(wrong)
    return result


def actions(
    model: StandIn, new: Sequence[str], existing: Sequence[Memory], right: list[Action]
) -> list[Action]:
    """The decision's faults; ``right``: what is rightly decided, NONE left out."""
    right = _nothing_chosen(model, new, right)
    right = _left_beside(model, right)
    for kind in ("written_over", "merge_dropped", "re_stamped", "deleted"):
        for planted in model.plantings.of(kind):
            right = _record_lost(model, planted, existing, right)
    return right


def summary(model: StandIn, texts: Sequence[str]) -> str:
    """One text of ``texts``; ``summary_dropped`` leaves its message's carriers out."""
    planted = model.plantings.fires("summary_dropped")
    parts: list[str] = []
    for text in texts:
        reading = model.oracle.read(text)
        if not (reading.right or reading.wrong):
            parts.append(" ".join(text.split()[:_KEPT_WORDS]))
        elif planted and planted.message in {c.message for c in reading.right}:
            model.effect(planted)
        else:
            parts.append(" ".join(text.split()))
    return "\n".join(parts)


def scores(model: StandIn, texts: Sequence[str], right: list[float]) -> list[float]:
    """The reranker's fault: what carries the planting's message comes last."""
    planted = model.plantings.fires("reranked_away")
    if not planted:
        return right
    carried = [planted.message in model.oracle.carried_by(text) for text in texts]
    if any(carried):
        model.effect(planted)
    return [0.0 if hit else score + 0.01 for hit, score in zip(carried, right, strict=True)]


def reply(model: StandIn, reading: Reading, response_id: str) -> Said | None:
    """The answer's faults; None: the model answers as well as it can."""
    knows = not reading.missing and not reading.misled
    for kind in ("declined", "took_another", "misread", "ignored", "answered_unknown"):
        planted = model.plantings.fires(kind)
        if planted is None or not knows:
            continue
        said = _said_wrongly(model, planted, reading)
        if said.text:
            model.effect(planted, response_id)
            return said
    return None


def _said_wrongly(model: StandIn, planted: Planting, reading: Reading) -> Said:
    if planted.kind == "declined":
        return Said(model.chance.choice(DECLINES), False)
    if planted.kind == "took_another" and not planted.detail.get("reply"):
        question = model.case.question
        return judged(question, Said(other_line(question, reading), False))
    return Said(planted.detail["reply"], False)


def _planted_for(model: StandIn, kind: str, message_id: str) -> Planting | None:
    return next((p for p in model.plantings.of(kind) if p.message == message_id), None)


def _replaced(text: str, planted: Planting) -> str:
    return text.replace(planted.detail["old"], planted.detail["new"])


def _nothing_chosen(model: StandIn, new: Sequence[str], right: list[Action]) -> list[Action]:
    for planted in model.plantings.of("chose_nothing"):
        lost = {t for t in new if planted.message in model.oracle.carried_by(t)}
        if any(action.text in lost for action in right):
            model.effect(planted)
            right = [action for action in right if action.text not in lost]
    return right


def _left_beside(model: StandIn, right: list[Action]) -> list[Action]:
    """The newer value is added; the older one, which it replaces, stays."""
    for planted in model.plantings.of("left_beside"):
        for place, action in enumerate(right):
            if action.event == "UPDATE" and planted.message in model.oracle.carried_by(action.text):
                model.effect(planted)
                right = [*right]
                right[place] = Action(str(1_000 + place), action.text, "ADD")
    return right


def _record_lost(
    model: StandIn, planted: Planting, existing: Sequence[Memory], right: list[Action]
) -> list[Action]:
    """The record that carries the planting's message is replaced or removed by this decision."""
    oracle = model.oracle
    if not {planted.detail.get("after", planted.message)} <= model.seen:
        return right
    victims = [m for m in existing if planted.message in oracle.carried_by(m.text)]
    cause = next((a for a in right if a.event == "ADD" and not oracle.speaks_of(a.text)), None)
    if not victims or cause is None:
        return right
    model.effect(planted)
    victim = victims[0]
    if planted.kind == "deleted":
        return [Action(victim.id, victim.text, "DELETE"), *right]
    text = cause.text
    if planted.kind == "merge_dropped":
        text = _merged(cause.text, planted)
    elif planted.kind == "re_stamped":
        text = _replaced(victim.text, planted)
        oracle.wrong(text, planted.message, planted.detail["reply"])
        return [Action(victim.id, text, "UPDATE", old_memory=victim.text), *right]
    rest = [action for action in right if action is not cause]
    return [Action(victim.id, text, "UPDATE", old_memory=victim.text), *rest]


def _merged(text: str, planted: Planting) -> str:
    first = (sentences(text) or [text])[0].rstrip(".!")
    return f"{first}, among other things that {planted.detail.get('who', 'they')} spoke of."
