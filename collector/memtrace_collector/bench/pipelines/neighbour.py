"""Another owner beside the case's own, with a little memory of his: what a wrong scope finds."""

from __future__ import annotations

from datetime import timedelta

from memtrace_collector.bench.dialogue import Message
from memtrace_collector.bench.planned import PlannedCase

NEIGHBOUR = "neighbour"
_SAID = (
    "My goldfish Biscuit lives in a tank of sixty litres.",
    "The parcel from the violin maker arrived in Ghent.",
    "I have signed up for the pottery evening with Rosalind.",
    "Our garden gate squeaks whenever the wind blows.",
    "The recipe for plum dumplings came from my aunt in Graz.",
)


def graph_of(owner: str) -> str:
    """The graph of an owner's memory."""
    return f"user:{owner}"


def neighbour_of(case: PlannedCase) -> str:
    """The neighbour of the case's owner: every case has its own."""
    return f"{case.owner}-{NEIGHBOUR}"


def neighbour_messages(case: PlannedCase) -> tuple[Message, ...]:
    """What the neighbour said, before anything that the owner said."""
    begin = min(message.said_at for message in case.messages) - timedelta(days=30)
    return tuple(
        Message(
            id=f"{NEIGHBOUR}/{number}",
            speaker="Ottilie",
            role="user",
            text=text,
            said_at=begin + timedelta(hours=number),
        )
        for number, text in enumerate(_SAID, start=1)
    )
