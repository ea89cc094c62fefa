"""The queue of flagged answers: who looks at which, when, and what became of it.

A case is in one state: ``unresolved`` (a flag whose answer has not arrived), ``waiting`` (no
verdict yet), ``judged``, ``set_aside`` (it failed too often). Whoever takes one has a *lease*;
one that ran out may be taken over. Each taking has a *token* of its own, so that a worker that
lost its lease can no longer write.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

UNRESOLVED, WAITING, JUDGED, SET_ASIDE = "unresolved", "waiting", "judged", "set_aside"
STATES = (UNRESOLVED, WAITING, JUDGED, SET_ASIDE)


class QueuedCase(NamedTuple):
    """A flagged answer, or (without a graph) what a flag named while no answer is known there."""

    case_id: str
    trace_id: str = ""
    span_id: str = ""
    graph_id: str = ""
    answered_ns: int = 0
    """When the answer began."""
    response_id: str = ""
    conversation_id: str = ""

    @property
    def is_resolved(self) -> bool:
        return bool(self.graph_id)


@dataclass(frozen=True, slots=True)
class Lease:
    """One taking of a case."""

    case: QueuedCase
    token: int
    since_ns: int
    """Since when it is waited for: when it came into the queue, or as its schedule said; 0: it
    is not waited for."""
    is_judged: bool
    attempts: int
    """Takings since the last that ended well, this one included."""
    step_ns: int
    """The back-off after which it was taken; 0: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a case is looked at again. A flag always brings it forward, to at once."""

    state: str
    due_ns: int | None = None
    """None: when one of its graphs changes."""
    not_before_ns: int = 0
    """A change of a graph before then is looked at then."""
    step_ns: int = 0
    since_ns: int = 0
    """Since when it is waited for; 0: it is not."""
    graph_ids: Collection[str] = ()
    """The graphs whose changes concern it."""


class SetAside(NamedTuple):
    """A case that failed too often, and with what."""

    case: QueuedCase
    reason: str
    attempts: int
