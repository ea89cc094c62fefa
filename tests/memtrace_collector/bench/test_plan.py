"""A plan is repeatable, keeps its splits apart, and gives each kind of fault what it needs."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from memtrace_collector.bench.dialogue import Dialogue, Message, Question
from memtrace_collector.bench.faults import KINDS, SYSTEMS
from memtrace_collector.bench.planned import PlannedCase
from memtrace_collector.bench.planning import windows, words
from memtrace_collector.bench.planning.plan import HELD_OUT_DIALOGUES, Wanted, plan
from tests.memtrace_collector.bench import bench_kit as kit

TOWNS = ("Porto", "Turin", "Ghent", "Malmo", "Lyon", "Graz", "Bergen", "Cadiz")
NAMES = ("Vera", "Otto", "Lena", "Paul", "Iris", "Hugo", "Nora", "Emil")


def dialogue(name: str = "conv-1") -> Dialogue:
    """Eight relatives who moved to eight towns, each told once among small talk."""
    messages: list[Message] = []
    questions: list[Question] = []
    for place in range(80):
        said_at = kit.MORNING + timedelta(days=place // 10, minutes=place % 10)
        speaker = ("Ana", "Ben")[place % 2]
        text = f"Chapter {place} of the novel about the lighthouse was slow, honestly."
        told = place // 10
        if place % 10 == 4:
            text = f"My cousin {NAMES[told]} has moved to {TOWNS[told]} with {told + 2} dogs."
        role = "user" if speaker == "Ana" else "assistant"
        messages.append(
            Message(id=f"m{place}", speaker=speaker, role=role, text=text, said_at=said_at)
        )
    asked_at = messages[-1].said_at + timedelta(days=1)
    for told, cousin in enumerate(NAMES):
        where = f"Where did Ana's cousin {cousin} move?"
        day = messages[told * 10 + 4].said_at.day
        for text, expected, category in (
            (where, TOWNS[told], "single_hop"),
            (f"When did cousin {cousin} move?", f"{day} May 2023", "temporal"),
            (f"What does cousin {cousin} collect?", "", "adversarial"),
        ):
            evidence = (f"m{told * 10 + 4}",)
            questions.append(
                Question(
                    id=f"{name}/{category}-{told}",
                    text=text,
                    asked_at=asked_at,
                    expected=expected,
                    evidence=evidence if expected else (),
                    category=category,
                    near=() if expected else evidence,
                    tempting="" if expected else "stamps",
                )
            )
    both = Question(
        id=f"{name}/multi_hop",
        text="Where did cousins Vera and Otto move?",
        asked_at=asked_at,
        expected="Porto and Turin",
        evidence=("m4", "m14"),
        category="multi_hop",
    )
    return Dialogue(
        id=name,
        source="locomo",
        owner=name,
        messages=tuple(messages),
        questions=(*questions, both),
    )


def cases(*systems: str, held_out: bool = False, seed: int = 1) -> list[PlannedCase]:
    wanted = Wanted(
        systems=systems, per_kind=2, controls=2, two_faults=2, held_out=held_out, seed=seed
    )
    held = sorted(HELD_OUT_DIALOGUES)[0]
    return plan([dialogue(), dialogue("conv-2"), dialogue(held)], wanted)


def test_the_same_seed_gives_the_same_plan_and_another_seed_another() -> None:
    assert cases("mem0-1") == cases("mem0-1")
    assert cases("mem0-1") != cases("mem0-1", seed=2)


def test_a_plan_survives_its_way_through_a_file() -> None:
    planned = cases("staged")
    assert msgspec.json.decode(msgspec.json.encode(planned), type=list[PlannedCase]) == planned


def test_the_splits_share_no_dialogue_and_held_out_kinds_stay_out_of_the_first() -> None:
    first, second = cases(*SYSTEMS), cases(*SYSTEMS, held_out=True)
    assert not {c.dialogue for c in first} & HELD_OUT_DIALOGUES
    assert {c.dialogue for c in second} <= HELD_OUT_DIALOGUES
    assert not any(KINDS[p.kind].held_out for c in first for p in c.plantings)
    assert any(KINDS[p.kind].held_out for c in second for p in c.plantings)
    assert all(c.held_out for c in second)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_kind_that_a_system_can_make_is_planned_with_what_it_needs(system: str) -> None:
    planned = cases(system)
    kinds = {p.kind for c in planned for p in c.plantings}
    known = {k.name for k in KINDS.values() if system in k.systems and not k.held_out}
    assert kinds == known
    assert [c for c in planned if not c.plantings]
    for case in planned:
        for planting in case.plantings:
            assert all(planting.detail.values()), planting


def test_message_ids_are_the_case_s_own_wherever_they_are_named() -> None:
    for case in cases("mem0-1", "staged"):
        known = {message.id for message in case.messages}
        assert len(known) == len(case.messages)
        assert set(case.question.evidence) <= known
        assert {p.message for p in case.plantings} <= known | {""}
        assert all(name.startswith(f"{case.id}/") for name in known)


def test_some_cases_have_two_faults() -> None:
    double = [c for c in cases("mem0-1") if len(c.plantings) == 2]
    assert {c.id.split("-")[3] for c in double} >= {"both", "twice"}
    twice = [c for c in double if "-twice-" in c.id]
    assert all([p.detail.get("role") for p in c.plantings] == [None, "also"] for c in twice)


def test_a_window_holds_the_evidence_in_order_and_nothing_that_says_it_again() -> None:
    told = dialogue()
    again = replace(told.messages[70], text="So Vera moved to Porto, you say.")
    messages = (*told.messages[:70], again, *told.messages[71:])
    question = told.questions[0]
    chance = random.Random(3)
    for _ in range(20):
        said = windows.window(replace(told, messages=messages), question, chance)
        assert windows.SMALLEST <= len(said) <= windows.LARGEST
        assert list(said) == sorted(said, key=lambda message: message.said_at)
        assert set(question.evidence) <= {message.id for message in said}
        assert again not in said


@pytest.mark.parametrize(
    ("fact", "expected", "reply"),
    [
        ("Ana moved on 7 May 2023.", "7 May 2023", "16 May 2023"),
        ("Ana moved in May.", "May 2023", "September 2023"),
        ("Ana paid 240 euros.", "240 euros", "243 euros"),
        ("Ana has two cats.", "two", "five"),
    ],
)
def test_another_value_is_of_the_same_kind(fact: str, expected: str, reply: str) -> None:
    change = words.change([fact], expected, "What?", [], random.Random(1))
    assert change is not None
    assert change.reply == reply


def test_a_value_that_the_facts_do_not_share_cannot_be_changed() -> None:
    assert words.change(["Ana moved."], "Porto", "Where?", ["Turin"], random.Random(1)) is None
