"""What each kind of fault needs of a case: the message, the words, what else must be said."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from memtrace_collector.bench.dialogue import Message, Question
from memtrace_collector.bench.planned import Planting
from memtrace_collector.bench.planning import words
from memtrace_collector.bench.stand_in.replies import DECLINES
from memtrace_collector.bench.stand_in.writing import TEMPORAL, day, facts_of, takes_not
from memtrace_collector.demo.language import sentences

ALSO = "also"
NEED, OPEN_DOMAIN = "need", "open_domain"
_NEVER_ABOUT_A_MESSAGE = (
    "not_searched", "declined", "took_another", "call_failed", "right_but_flagged",
)  # fmt: skip
_SAID_ON = re.compile(r" \(said on [^)]*\)")
_DENIES = re.compile(
    r"\b(?:not|no|none|never|nothing|nobody|neither|nor|without|cannot)\b|n['’]t\b"
)
_TEMPORAL_ONLY = ("re_stamped", "date_stripped")
_NOT_TEMPORAL = ("negated", "left_beside", "stale_index")
_UNDATED = ("left_beside",)
"""Kinds whose outdated value has no day beside it: with days of both, a reader could choose."""
_OUTRIGHT = ("forget_ignored",)
"""Kinds that need a question which names what it is about, and an answer that was said so."""
_PEOPLE = ("Alex", "Robin", "Sam", "Chris")


@dataclass(frozen=True, slots=True)
class Draft:
    """A case to be: what is said, what is asked, what goes wrong."""

    messages: tuple[Message, ...]
    question: Question
    plantings: tuple[Planting, ...] = ()


@dataclass(frozen=True, slots=True)
class Material:
    """What a draft is made of. ``pool``: answers to questions of the same kind.

    ``elsewhere``: whatever else is answered in the dialogue, to speak of something else.
    """

    draft: Draft
    pool: Sequence[str]
    chance: random.Random
    elsewhere: Sequence[str] = ()

    @property
    def question(self) -> Question:
        return self.draft.question

    def message(self, name: str) -> Message:
        return next(m for m in self.draft.messages if m.id == name)

    def carriers(self, name: str) -> list[str]:
        """The facts of an evidence message that carry the answer."""
        return [f.text for f in facts_of(self.message(name), self.question) if f.carries]

    def texts(self) -> list[str]:
        """Everything that is said or will be extracted, and the question."""
        said = [m.text for m in self.draft.messages]
        return [*said, *(f for m in self.draft.messages for f in m.facts), self.question.text]

    def with_planting(self, kind: str, message: str = "", **detail: str) -> Draft:
        planting = Planting(kind=kind, message=message, detail=detail)
        return replace(self.draft, plantings=(*self.draft.plantings, planting))


Make = Callable[[Material, str], "Draft | None"]


def draft(kind: str, material: Material, message: str = "") -> Draft | None:
    """``material`` with a fault of ``kind`` at ``message`` (default: one of the evidence).

    None where this kind makes no sense for this question.
    """
    question = material.question
    if not fits(kind, question):
        return None
    if kind in UNANSWERABLE:
        return UNANSWERABLE[kind](material, material.chance.choice(question.near))
    if kind in _NEVER_ABOUT_A_MESSAGE:
        return material.with_planting(kind)
    place = message or material.chance.choice(question.evidence)
    make = _SPECIAL.get(kind)
    return make(material, place) if make else material.with_planting(kind, place)


def fits(kind: str, question: Question) -> bool:
    """Whether a fault of ``kind`` can be planted for this question at all."""
    temporal = question.category == TEMPORAL
    if kind in (_NOT_TEMPORAL if temporal else _TEMPORAL_ONLY):
        return False
    if kind in _OUTRIGHT and question.category in (NEED, OPEN_DOMAIN):
        return False
    return (not question.expected) == (kind in UNANSWERABLE)


def _value_changed(kind: str) -> Make:
    def make(material: Material, name: str) -> Draft | None:
        question = material.question
        facts = material.carriers(name)
        found = words.change(
            facts, question.expected, question.text, material.pool, material.chance
        )
        if found is None:
            return None
        return material.with_planting(kind, name, old=found.old, new=found.new, reply=found.reply)

    return make


def _negated(material: Material, name: str) -> Draft | None:
    """Of facts of one sentence that denies nothing yet: else something else, or nothing, would be
    denied."""
    facts = [_SAID_ON.sub("", fact) for fact in material.carriers(name)]
    if not all(takes_not(f) and len(sentences(f)) == 1 and not _DENIES.search(f) for f in facts):
        return None
    reply = material.chance.choice(DECLINES)
    return material.with_planting("negated", name, reply=reply)


def _owner_swapped(material: Material, name: str) -> Draft | None:
    """The fact is said of the other person in the dialogue, or of a made-up one."""
    speaker = material.message(name).speaker
    first = speaker.split()[0]
    facts = material.carriers(name)
    old = next((n for n in (speaker, first, "User") if all(n in fact for fact in facts)), "")
    others = [m.speaker for m in material.draft.messages if m.speaker not in (speaker, "Assistant")]
    new = others[0] if others else material.chance.choice(_PEOPLE)
    if not old:
        return None
    reply = f"I know of no such thing of {old}; it was {new}."
    return material.with_planting("owner_swapped", name, old=old, new=new, reply=reply)


def _reply_altered(kind: str, key: str = "reply") -> Make:
    """The right item, another value: of a date, the day on which it was said."""

    def make(material: Material, name: str) -> Draft | None:
        question = material.question
        said = day(material.message(name).said_at)
        wrong = words.altered(question.expected, question.text, material.pool, material.chance)
        number, month, _ = said.split()
        if question.category == TEMPORAL and not re.search(
            rf"\b{number} ?{month}", question.expected
        ):
            wrong = said
        return material.with_planting(kind, name, **{key: wrong}) if wrong else None

    return make


def _from_nowhere(kind: str) -> Make:
    def make(material: Material, name: str) -> Draft | None:
        reply = words.unheard(material.pool, material.texts(), material.chance)
        return material.with_planting(kind, name, reply=reply) if reply else None

    return make


def _made_up(material: Material, name: str) -> Draft | None:
    reply = words.unheard(material.pool, material.texts(), material.chance)
    if not reply:
        return None
    about = words.topic(material.question.text)
    said = day(material.message(name).said_at)
    text = f"{about[0].upper()}{about[1:]}: {reply} (said on {said})"
    return material.with_planting("made_up", name, text=text, reply=reply)


def _elsewhere(kind: str) -> Make:
    def make(material: Material, name: str) -> Draft | None:
        return material.with_planting(kind, name, owner=f"other-{material.chance.randrange(10**6)}")

    return make


def _other_words(kind: str, key: str) -> Make:
    """``key``: a text about something else, from the dialogue's other answers."""

    def make(material: Material, name: str) -> Draft | None:
        others = material.elsewhere or material.pool
        about = words.unheard(others, material.carriers(name), material.chance)
        return material.with_planting(kind, name, **{key: about}) if about else None

    return make


def _merge_dropped(material: Material, name: str) -> Draft | None:
    return material.with_planting("merge_dropped", name, who=material.message(name).speaker)


def _with_earlier_value(kind: str) -> Make:
    """The same person said another value before; the evidence corrects it."""

    def make(material: Material, name: str) -> Draft | None:
        found = _value_changed(kind)(material, name)
        if found is None:
            return None
        planting = found.plantings[-1]
        evidence = material.message(name)
        fact = _SAID_ON.sub("", material.carriers(name)[0])
        wrong = fact.replace(planting.detail["old"], planting.detail["new"])
        place = material.chance.randrange(max(1, _place(found.messages, name) // 2))
        said_at = found.messages[place].said_at - timedelta(seconds=20)
        earlier = replace(
            evidence,
            id=f"{name}/earlier",
            text=wrong,
            facts=(wrong if kind in _UNDATED else f"{wrong.rstrip('.')} (said on {day(said_at)})",),
            said_at=said_at,
        )
        detail = {**planting.detail, "earlier": earlier.id, "text": earlier.facts[0]}
        return replace(
            found,
            messages=_inserted(found.messages, place, earlier),
            plantings=(*found.plantings[:-1], replace(planting, detail=detail)),
        )

    return make


def _forget_ignored(material: Material, name: str) -> Draft | None:
    """Later, the same person asks to forget it; the right answer is then to decline."""
    question, messages = material.question, material.draft.messages
    if len(question.evidence) > 1:
        return None
    about = words.topic(question.text)
    place = min(len(messages), _place(messages, name) + material.chance.randint(4, 10))
    asked = messages[place - 1]
    request = replace(
        material.message(name),
        id=f"{name}/forget",
        text=f"Please forget what I told you about this: {about}.",
        facts=(f"{material.message(name).speaker} asks to forget this: {about}.",),
        said_at=asked.said_at + timedelta(seconds=20),
    )
    forgotten = replace(question, expected="", evidence=(request.id,), near=(name,))
    detail = {"forget": name, "reply": question.expected}
    planting = Planting(kind="forget_ignored", message=request.id, detail=detail)
    return Draft(_inserted(messages, place, request), forgotten, (planting,))


def said_twice(material: Material, name: str) -> Draft | None:
    """The evidence is said again right after it, and that is not extracted: also a cause."""
    if material.question.category == TEMPORAL or len(material.question.evidence) > 1:
        return None
    evidence = material.message(name)
    again = replace(
        evidence,
        id=f"{name}/again",
        text=f"As I said before: {evidence.text}",
        facts=tuple(f"{fact.rstrip('.')}, as mentioned before." for fact in evidence.facts),
        said_at=evidence.said_at + timedelta(seconds=20),
    )
    place = _place(material.draft.messages, name) + 1
    second = Planting(kind="left_out", message=again.id, detail={"role": ALSO, "same_as": name})
    return Draft(
        _inserted(material.draft.messages, place, again),
        material.question,
        (*material.draft.plantings, second),
    )


def _inserted(messages: tuple[Message, ...], place: int, message: Message) -> tuple[Message, ...]:
    return (*messages[:place], message, *messages[place:])


def _place(messages: Sequence[Message], name: str) -> int:
    return next(place for place, message in enumerate(messages) if message.id == name)


UNANSWERABLE: dict[str, Make] = {
    "made_up": _made_up,
    "answered_unknown": _from_nowhere("answered_unknown"),
}
"""Kinds that need a question to which nobody said the answer."""
_SPECIAL: dict[str, Make] = {
    "value_changed": _value_changed("value_changed"),
    "saved_wrongly": _value_changed("saved_wrongly"),
    "negated": _negated,
    "owner_swapped": _owner_swapped,
    "misread": _reply_altered("misread"),
    "wrong_reference": _reply_altered("wrong_reference", "expected"),
    "ignored": _from_nowhere("ignored"),
    "filed_elsewhere": _elsewhere("filed_elsewhere"),
    "wrong_namespace": _elsewhere("wrong_namespace"),
    "query_lost": _other_words("query_lost", "new"),
    "missed": _other_words("missed", "as_if"),
    "re_stamped": _value_changed("re_stamped"),
    "merge_dropped": _merge_dropped,
    "left_beside": _with_earlier_value("left_beside"),
    "stale_index": _with_earlier_value("stale_index"),
    "forget_ignored": _forget_ignored,
}
