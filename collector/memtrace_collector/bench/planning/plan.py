"""A seeded plan: for each system and kind of fault, cases over the dialogues of one split."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from memtrace_collector.bench.dialogue import Dialogue, Question
from memtrace_collector.bench.faults import KINDS, SYSTEMS, FaultKind
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.planning import drafts
from memtrace_collector.bench.planning.drafts import Draft, Material
from memtrace_collector.bench.planning.posed import is_well_posed
from memtrace_collector.bench.planning.windows import window
from memtrace_collector.bench.planning.words import question_word

HELD_OUT_DIALOGUES = frozenset(("conv-48", "conv-49", "conv-50", "Lin_Wanyu", "Sarah_Miller"))
"""Not looked at while the rules are developed."""
BOTH_NEEDED = (("left_out", "left_out"), ("left_out", "deleted"), ("value_changed", "left_out"))
"""Faults at two messages that the question needs: only both repairs together would do."""
SAID_TWICE = ("left_out", "deleted", "written_over")
"""Said twice, lost by this fault, and the second time not extracted, which is also a cause."""
CONTROL = "control"
MakeDraft = Callable[[Material], "Draft | None"]
Fits = Callable[[Question], bool]
_ATTEMPTS = 40
"""Questions tried for each case that is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How large a plan is. Numbers are cases per system."""

    per_kind: int = 4
    controls: int = 8
    two_faults: int = 6
    systems: Sequence[str] = SYSTEMS
    kinds: Sequence[str] = tuple(KINDS)
    held_out: bool = False
    seed: int = 1


def plan(dialogues: Sequence[Dialogue], wanted: Wanted) -> list[PlannedCase]:
    """The cases, in the order system, kind, number. The same arguments give the same plan.

    The held-out split has the held-out dialogues with every kind; the other split has the rest
    of the dialogues without the held-out kinds. Where too few questions fit a kind, it gets
    fewer cases.
    """
    kept = [
        replace(d, questions=tuple(q for q in d.questions if is_well_posed(d, q)))
        for d in dialogues
        if (d.id in HELD_OUT_DIALOGUES) == wanted.held_out
    ]
    if not kept:
        return []
    cases: list[PlannedCase] = []
    for system in wanted.systems:
        planner = _Planner(system, kept, wanted)
        for kind in _applicable(system, wanted):
            cases += planner.single(kind)
        cases += planner.controls()
        cases += planner.double()
    return cases


def _applicable(system: str, wanted: Wanted) -> Iterator[FaultKind]:
    for kind in KINDS.values():
        looked_at = wanted.held_out or not kind.held_out
        if system in kind.systems and kind.name in wanted.kinds and looked_at:
            yield kind


def _any_question(_question: Question) -> bool:
    return True


def _has_one_message(question: Question) -> bool:
    return len(question.evidence) == 1


def _has_two_messages(question: Question) -> bool:
    return len(question.evidence) > 1


class _Planner:
    """The cases of one system."""

    def __init__(self, system: str, dialogues: Sequence[Dialogue], wanted: Wanted) -> None:
        self._system = system
        self._dialogues = dialogues
        self._wanted = wanted
        self._split = "held" if wanted.held_out else "dev"

    def single(self, kind: FaultKind) -> list[PlannedCase]:
        def make(material: Material) -> Draft | None:
            return drafts.draft(kind.name, material)

        def fits(question: Question) -> bool:
            return drafts.fits(kind.name, question)

        return self._cases(kind.name, self._wanted.per_kind, make, fits)

    def controls(self) -> list[PlannedCase]:
        return self._cases(CONTROL, self._wanted.controls, lambda material: material.draft)

    def double(self) -> list[PlannedCase]:
        """Two faults each: both needed, or the same thing said and lost twice."""
        known = {kind.name for kind in _applicable(self._system, self._wanted)}
        both = [pair for pair in BOTH_NEEDED if known.issuperset(pair)]
        twice = [kind for kind in SAID_TWICE if known >= {kind, "left_out"}]
        each = -(-self._wanted.two_faults // max(1, len(both) + len(twice)))
        cases = []
        for pair in both:
            name = f"both-{'+'.join(pair)}"
            cases += self._cases(name, each, _both_needed(*pair), _has_two_messages)
        for kind in twice:
            cases += self._cases(f"twice-{kind}", each, _twice(kind), _has_one_message)
        return cases

    def _cases(
        self, name: str, count: int, make: MakeDraft, fits: Fits = _any_question
    ) -> list[PlannedCase]:
        chance = random.Random(self._seed(name))  # noqa: S311 - repeatable on purpose
        found: list[PlannedCase] = []
        tried = 0
        for dialogue, question in self._questions(chance):
            if len(found) == count or tried == count * _ATTEMPTS:
                break
            if not fits(question):
                continue
            tried += 1
            said = window(dialogue, question, chance)
            if not said:
                continue
            drafted = make(_material(dialogue, Draft(said, question), chance))
            if drafted is not None:
                identifier = f"{self._split}-{self._system}-{name}-{len(found):03d}"
                found.append(self._case(identifier, dialogue, drafted))
        return found

    def _seed(self, name: str) -> str:
        return f"{self._wanted.seed}/{self._system}/{name}/{self._split}"

    def _questions(self, chance: random.Random) -> Iterator[tuple[Dialogue, Question]]:
        """Every question once; dialogues take turns, categories come as often as in the data."""
        stacks = [
            [(dialogue, question) for question in dialogue.questions]
            for dialogue in self._dialogues
        ]
        for stack in stacks:
            chance.shuffle(stack)
        chance.shuffle(stacks)
        for row in zip_longest(*stacks):
            yield from (pair for pair in row if pair is not None)

    def _case(self, identifier: str, dialogue: Dialogue, drafted: Draft) -> PlannedCase:
        return with_own_ids(
            PlannedCase(
                id=identifier,
                system=self._system,
                dialogue=dialogue.id,
                owner=f"{dialogue.owner}-{identifier}",
                messages=drafted.messages,
                question=drafted.question,
                plantings=drafted.plantings,
                held_out=self._wanted.held_out,
            )
        )


def _material(dialogue: Dialogue, drafted: Draft, chance: random.Random) -> Material:
    asked = question_word(drafted.question.text)
    others = [other for other in dialogue.questions if other is not drafted.question]
    answers = [other.expected or other.tempting for other in others]
    alike = [a for a, other in zip(answers, others) if question_word(other.text) == asked]
    return Material(drafted, alike, chance, answers)


def with_own_ids(case: PlannedCase) -> PlannedCase:
    """The case with message ids that no other case has, wherever they are named."""

    def own(name: str) -> str:
        return f"{case.id}/{name}"

    names = {message.id for message in case.messages}
    question = case.question
    return replace(
        case,
        messages=tuple(replace(m, id=own(m.id)) for m in case.messages),
        question=replace(
            question,
            evidence=tuple(map(own, question.evidence)),
            near=tuple(map(own, question.near)),
        ),
        plantings=tuple(
            replace(
                planting,
                message=own(planting.message) if planting.message else "",
                detail={k: own(v) if v in names else v for k, v in planting.detail.items()},
            )
            for planting in case.plantings
        ),
    )


def _both_needed(one: str, other: str) -> MakeDraft:
    def make(material: Material) -> Draft | None:
        evidence = material.question.evidence
        if len(evidence) < 2:
            return None
        first = drafts.draft(one, material, evidence[0])
        return drafts.draft(other, replace(material, draft=first), evidence[1]) if first else None

    return make


def _twice(kind: str) -> MakeDraft:
    def make(material: Material) -> Draft | None:
        if not material.question.evidence:
            return None
        name = material.question.evidence[0]
        first = drafts.draft(kind, material, name)
        if first is None:
            return None
        again = drafts.said_twice(replace(material, draft=first), name)
        if again is None or kind == "left_out":
            return again
        wait = replace(again.plantings[0], detail={"after": again.plantings[1].message})
        return replace(again, plantings=(wait, *again.plantings[1:]))

    return make
