"""What the stand-in knows of the case in hand: which texts carry the evidence, which mislead.

It recognises a text because it wrote that text itself, never by its meaning. So what it answers
depends on what reached the prompt and on nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.planned import PlannedCase, Planting
from memtrace_collector.bench.stand_in.writing import (
    TEMPORAL,
    Fact,
    carrying_sentences,
    day,
    facts_of,
)

CUT_OUT = "…"
"""Stands in :attr:`Reading.rest` where a carrier stood."""
_BEFORE = 120
"""Characters before a raw message among which its date is looked for."""
_SHORTEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A text that speaks of an evidence message: rightly, or wrongly and then with what reply."""

    text: str
    message: str
    right: bool
    reply: str = ""
    wins: bool = False
    """A wrong one that is believed even beside a right one."""
    raw: bool = False
    """The words as they were said: a relative date in them needs the day beside them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a context holds of the evidence."""

    right: tuple[Carrier, ...]
    wrong: tuple[Carrier, ...]
    missing: tuple[str, ...]
    """Evidence messages without a right carrier."""
    rest: str
    """The context without the carriers."""

    @property
    def misled(self) -> Carrier | None:
        """The wrong carrier that decides the answer, if one does."""
        for carrier in self.wrong:
            if carrier.wins or carrier.message in self.missing:
                return carrier
        return None


class Oracle:
    """The carriers of one case. Grows as the stand-in (or a pipeline for it) writes texts."""

    def __init__(self, case: PlannedCase) -> None:
        self.case = case
        self.question = case.question
        self._facts = {m.id: facts_of(m, case.question) for m in case.messages}
        self._carriers: dict[str, Carrier] = {}
        self._outdated: dict[str, str] = {}
        self._forgotten: dict[str, frozenset[str]] = {}
        for message in case.messages:
            if message.id in case.question.evidence:
                self._know(message, message.id)
        for planting in case.plantings:
            self._know_planned(planting)

    def facts(self, message: str) -> tuple[Fact, ...]:
        """What is to be remembered of a message; empty for an id that is none of the case's."""
        return self._facts.get(message, ())

    def right(self, text: str, messages: Iterable[str]) -> None:
        """``text`` (a summary, a merged record, a chunk …) carries these evidence messages."""
        for message in messages:
            self._add(Carrier(text=text, message=message, right=True))

    def wrong(self, text: str, message: str, reply: str, *, wins: bool = False) -> None:
        """``text`` speaks of an evidence message and has it wrong: who believes it says that."""
        self._add(Carrier(text=text, message=message, right=False, reply=reply, wins=wins))

    def carried_by(self, text: str) -> frozenset[str]:
        """Evidence messages that ``text`` carries rightly."""
        return frozenset(carrier.message for carrier in self.read(text).right)

    def spoken_of(self, text: str) -> frozenset[str]:
        """Messages of which ``text`` holds something, right or wrong."""
        reading = self.read(text)
        return frozenset(carrier.message for carrier in (*reading.right, *reading.wrong))

    def speaks_of(self, text: str) -> bool:
        """``text`` holds something of the evidence, right or wrong."""
        return bool(self.spoken_of(text))

    def read(self, context: str) -> Reading:
        """What ``context`` holds. The longest text goes first: it may quote a shorter one."""
        rest = context
        right: list[Carrier] = []
        wrong: list[Carrier] = []
        known = sorted(self._carriers.values(), key=lambda c: (len(c.text), c.text), reverse=True)
        for carrier in known:
            found = _pattern(carrier.text).search(rest)
            if found is None or (carrier.raw and not self._is_dated(carrier, rest[: found.end()])):
                continue
            (right if carrier.right else wrong).append(carrier)
            if not any(c is not carrier and c.text == carrier.text for c in known):
                rest = rest[: found.start()] + CUT_OUT + rest[found.end() :]
        carried = {carrier.message for carrier in right}
        missing = tuple(m for m in self.question.evidence if m not in carried)
        return Reading(tuple(right), tuple(wrong), missing, rest)

    def outdated(self, text: str) -> frozenset[str]:
        """Evidence messages whose value replaces the one in ``text``, said before it."""
        return frozenset(
            self._outdated[c.message] for c in self.read(text).wrong if c.message in self._outdated
        )

    def to_forget(self, request: str) -> frozenset[str]:
        """Texts that the message ``request`` asks to forget."""
        return self._forgotten.get(request, frozenset())

    def _know(self, message: Message, evidence: str) -> None:
        """``message`` carries what the evidence message says: it is that, or says it again."""
        question = replace(self.question, evidence=(message.id,))
        for text in (message.text, *carrying_sentences(message, question)):
            if len(text) >= _SHORTEST or text == message.text:
                self._add(Carrier(text=text, message=evidence, right=True, raw=True))
        self._facts[message.id] = facts_of(message, question)
        for fact in self._facts[message.id]:
            if fact.carries:
                self._add(Carrier(text=fact.text, message=evidence, right=True))

    def _know_planned(self, planting: Planting) -> None:
        """What a plan put into the dialogue for its faults is there in the clean run, too."""
        detail = planting.detail
        if "same_as" in detail:
            self._know(self._message(planting.message), detail["same_as"])
        if "earlier" in detail:
            self._outdated[detail["earlier"]] = planting.message
            for text in (detail["text"], self._message(detail["earlier"]).text):
                self.wrong(text, detail["earlier"], detail["reply"], wins=True)
        if "forget" in detail:
            message = self._message(detail["forget"])
            question = replace(self.question, expected=detail["reply"], evidence=(message.id,))
            self._facts[message.id] = facts_of(message, question)
            texts = [fact.text for fact in self._facts[message.id] if fact.carries]
            self._forgotten[planting.message] = frozenset(texts)
            for text in (*texts, message.text, *carrying_sentences(message, question)):
                self.wrong(text, message.id, detail["reply"], wins=True)

    def _message(self, name: str) -> Message:
        return next(message for message in self.case.messages if message.id == name)

    def _add(self, carrier: Carrier) -> None:
        self._carriers[f"{carrier.message} {carrier.right} {carrier.text}"] = carrier

    def _is_dated(self, carrier: Carrier, until: str) -> bool:
        if self.question.category != TEMPORAL:
            return True
        said_at = next(m.said_at for m in self.case.messages if m.id == carrier.message)
        near = until[-len(carrier.text) - _BEFORE :]
        return day(said_at) in near or said_at.date().isoformat() in near


@lru_cache(maxsize=1_000)
def _pattern(text: str) -> re.Pattern[str]:
    """``text`` whatever white space stands between its words."""
    return re.compile(r"\s+".join(map(re.escape, text.split())))
