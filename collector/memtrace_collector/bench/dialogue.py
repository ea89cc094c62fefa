"""A dialogue with questions about it, whatever file it came from. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn. ``id`` is unique in its dialogue; ``said_at`` has a time zone."""

    id: str
    speaker: str
    role: str
    """user or assistant."""
    text: str
    said_at: datetime
    facts: tuple[str, ...] = ()
    """What the data set itself says is to be remembered of this turn, in its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, what would be right, and the messages that say so.

    ``expected`` is empty when the owner never said it and declining would be right.
    """

    id: str
    text: str
    asked_at: datetime
    expected: str
    evidence: tuple[str, ...]
    """Ids of messages; all of them are needed."""
    category: str
    """single_hop, multi_hop, temporal, open_domain, adversarial or need (RealMem)."""
    tempting: str = ""
    """A wrong answer that the data itself gives (LoCoMo, adversarial)."""
    near: tuple[str, ...] = ()
    """Messages about something alike, which a careless model would answer from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """Everything one owner said, in order, and the questions about it."""

    id: str
    source: str
    """locomo or realmem."""
    owner: str
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]
    dirt: tuple[str, ...] = ()
    """What was wrong in the file, one line each; what could be kept was kept."""
