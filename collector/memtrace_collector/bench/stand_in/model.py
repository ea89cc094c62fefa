"""The stand-in for every model that a pipeline calls: deterministic, and right unless planted.

It extracts, decides, rewrites, summarises, embeds, scores and answers for the case in hand. Its
methods are called in the pipeline's own process, inside whichever operation is current there; its
chat is also served over HTTP (:mod:`server`), for clients that want an endpoint.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Sequence
from functools import lru_cache

from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.planned import PlannedCase, Planting
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in import faulty
from memtrace_collector.bench.stand_in.oracle import Oracle
from memtrace_collector.bench.stand_in.replies import Said, reply_to
from memtrace_collector.demo import decision
from memtrace_collector.demo.decision import Action, Memory
from memtrace_collector.demo.embeddings import embed
from memtrace_collector.demo.language import content_stems, overlap

MODEL_NAME = "memtrace-stand-in"
DIMENSIONS = 256
_NEARER = 0.4
"""How much of the question goes into the vector of a text that speaks of the evidence."""
_FARTHER = -0.2
"""The same where it is to come behind the limit: a model that sees no likeness."""


class StandIn:
    """One model for one process: :meth:`begin` gives it the case in hand."""

    case: PlannedCase
    oracle: Oracle
    plantings: Plantings
    seen: set[str]
    """Ids of the messages from which facts were extracted so far."""

    def __init__(self) -> None:
        self._count = itertools.count(1)
        self._said: dict[str, bool] = {}
        self._failing = False
        self._chance = random.Random(0)  # noqa: S311 - repeatable on purpose, no secret

    def begin(self, case: PlannedCase, plantings: Plantings) -> None:
        """From here on everything is about ``case``, with these faults."""
        self.case = case
        self.oracle = Oracle(case)
        self.plantings = plantings
        self.seen = set()
        self._said = {}
        self._chance = random.Random(case.question.id)  # noqa: S311 - as above

    def extract(self, messages: Sequence[Message]) -> list[str]:
        """Facts of these messages, in order, each once."""
        texts: list[str] = []
        for message in messages:
            self.seen.add(message.id)
            facts = [fact.text for fact in self.oracle.facts(message.id)]
            texts += faulty.facts(self, message, facts)
        return list(dict.fromkeys(texts))

    def decide(self, facts: Sequence[str], existing: Sequence[Memory]) -> list[Action]:
        """What to do with ``facts`` beside ``existing`` records, whose ids are small integers.

        What speaks of the evidence is never merged into anything else: it is added.
        """
        speaks = self.oracle.speaks_of
        others = [memory for memory in existing if not speaks(memory.text)]
        known = {memory.text for memory in existing}
        actions: list[Action] = []
        numbers = itertools.count(len(existing))
        for fact in (fact for fact in facts if fact not in known):
            old = self._outdated_by(fact, existing)
            usual = [] if speaks(fact) else decision.decide(others, [fact])
            changed = [a for a in usual if a.event in ("UPDATE", "DELETE")]
            if old is not None:
                actions.append(Action(old.id, fact, "UPDATE", old_memory=old.text))
            elif changed and changed[0].id not in {action.id for action in actions}:
                actions.append(changed[0])
            elif not usual or any(action.event == "ADD" for action in usual):
                actions.append(Action(str(next(numbers)), fact, "ADD"))
        return faulty.actions(self, facts, existing, self._forgetting(facts, existing, actions))

    def _outdated_by(self, fact: str, existing: Sequence[Memory]) -> Memory | None:
        """The record whose value this fact replaces."""
        carried = self.oracle.carried_by(fact)
        return next((m for m in existing if self.oracle.outdated(m.text) & carried), None)

    def _forgetting(
        self, facts: Sequence[str], existing: Sequence[Memory], actions: list[Action]
    ) -> list[Action]:
        """A fact that asks to forget is no record: what it asks to forget is deleted."""
        for message in self.case.messages:
            texts = self.oracle.to_forget(message.id)
            asked = {fact.text for fact in self.oracle.facts(message.id)} & set(facts)
            if not texts or not asked:
                continue
            actions = [action for action in actions if action.text not in asked]
            planted = self.plantings.fires("forget_ignored", message.id)
            if planted:
                self.effect(planted)
                continue
            actions += [Action(m.id, m.text, "DELETE") for m in existing if m.text in texts]
        return actions

    def rewrite(self, query: str) -> str:
        """Another wording of ``query`` for a search: its content words stay."""
        planted = self.plantings.fires("query_lost")
        if planted:
            self.effect(planted)
            return planted.detail["new"]
        return query.rstrip("?").strip()

    def summarise(self, texts: Sequence[str]) -> str:
        """One text of ``texts``: it keeps what carries the evidence, and the start of the rest."""
        return faulty.summary(self, texts)

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """A score from 0 to 1 for each text; what carries the evidence scores highest."""
        return faulty.scores(self, texts, relevance(query, texts, self.oracle))

    def embed(self, text: str) -> list[float]:
        """The unit vector of ``text``, :data:`DIMENSIONS` numbers.

        What speaks of the evidence lies nearer to the question than its words alone would have
        it: a good embedding model knows what is about what.
        """
        vector = _embedded(text)
        spoken_of = self.oracle.spoken_of(text)
        if not spoken_of:
            return list(vector)
        planted = self.plantings.fires("below_the_limit")
        share = _FARTHER if planted and planted.message in spoken_of else _NEARER
        asked = _embedded(self.case.question.text)
        mixed = [own + share * wanted for own, wanted in zip(vector, asked, strict=True)]
        norm = math.sqrt(sum(x * x for x in mixed))
        return [x / norm for x in mixed]

    def answer(self, context: str, response_id: str = "") -> str:
        """The reply to the case's question from ``context``, the prompt without the question."""
        reading = self.oracle.read(context)
        said = faulty.reply(self, reading, response_id)
        if said is None:
            said = reply_to(self.case.question, reading, self._chance)
        return self.say(said)

    def say(self, said: Said) -> str:
        """Keep whether a reply is right, for :meth:`judge`."""
        self._said[said.text] = said.right
        return said.text

    def judge(self, reply: str) -> bool:
        """Whether ``reply``, which this model gave to the case in hand, is right."""
        return self._said.get(reply, False)

    def effect(self, planting: Planting, response_id: str = "") -> None:
        """A planting took effect in the current operation, or in the call of that response."""
        if response_id:
            self.plantings.took_effect_in_reply(planting, response_id)
        else:
            self.plantings.took_effect(planting)

    def fail_next_call(self) -> None:
        """The next call over HTTP gets an error in place of a reply."""
        self._failing = True

    def fails_next_call(self) -> bool:
        """Whether this is the call that fails; it is asked once for each call."""
        failing, self._failing = self._failing, False
        return failing

    def response_id(self, text: str) -> str:
        """An id for a completion; unique within the run."""
        digest = hashlib.sha256(f"{self.case.id} {text}".encode()).hexdigest()[:16]
        return f"chatcmpl-{digest}-{next(self._count)}"

    @property
    def chance(self) -> random.Random:
        """Seeded by the question: the same in the clean and in the planted run."""
        return self._chance


def relevance(query: str, texts: Sequence[str], oracle: Oracle) -> list[float]:
    """Share of stems in common with ``query``, and a bonus for what carries the evidence."""
    asked = set(content_stems(query))
    shares = [overlap(asked, set(content_stems(text))) for text in texts]
    bonus = [0.5 if oracle.carried_by(text) else 0.0 for text in texts]
    return [share / 2 + more for share, more in zip(shares, bonus, strict=True)]


@lru_cache(maxsize=20_000)
def _embedded(text: str) -> tuple[float, ...]:
    return tuple(embed(text, DIMENSIONS))
