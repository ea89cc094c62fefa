"""Small dialogues and cases for the tests of the benchmark."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from memtrace_collector.bench.dialogue import Message, Question
from memtrace_collector.bench.planned import PlannedCase, Planting

MORNING = datetime(2023, 5, 8, 9, tzinfo=timezone.utc)
LINES = (
    ("Ana", "The weather has been awful all week."),
    ("Ben", "I spent the evening reading about glaciers in Patagonia."),
    ("Ana", "My sister Vera moved to Lisbon with her two cats."),
    ("Ben", "Work was quiet, we only reviewed some old drawings."),
    ("Ana", "I have a red bicycle now, I paid 240 euros for it yesterday."),
    ("Ben", "I should call the plumber about the kitchen sink."),
    ("Ana", "The concert in the park was fun, the brass band was loud."),
    ("Ben", "Tomorrow I will bake rye bread with caraway."),
    ("Ana", "Our choir is looking for another tenor."),
    ("Ben", "The tram was late again this morning."),
)
PRICE = "m5"


def messages() -> tuple[Message, ...]:
    """Ten turns of two people, a minute apart."""
    return tuple(
        Message(
            id=f"m{place}",
            speaker=speaker,
            role="user" if speaker == "Ana" else "assistant",
            text=text,
            said_at=MORNING + timedelta(minutes=place),
        )
        for place, (speaker, text) in enumerate(LINES, start=1)
    )


def question(**changes: Any) -> Question:
    """What did the bicycle cost?"""
    fields: dict[str, Any] = {
        "id": "q1",
        "text": "How much did Ana pay for the bicycle?",
        "asked_at": MORNING + timedelta(days=1),
        "expected": "240 euros",
        "evidence": (PRICE,),
        "category": "single_hop",
    }
    return Question(**{**fields, **changes})


def case(system: str, *plantings: Planting, name: str = "case-1", **changes: Any) -> PlannedCase:
    """The question about the bicycle, with these faults."""
    fields: dict[str, Any] = {
        "id": name,
        "system": system,
        "dialogue": "ana-and-ben",
        "owner": f"ana-{name}",
        "messages": messages(),
        "question": question(),
        "plantings": plantings,
        "held_out": False,
    }
    return PlannedCase(**{**fields, **changes})
