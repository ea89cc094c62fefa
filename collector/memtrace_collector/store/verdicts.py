"""Verdicts and what persons say about them, as every case store keeps them.

A verdict's row is its JSON form. A judgement is a verdict of its own whose ``judgement`` says who
judged which revision and how far it agrees with the machine; it is in force while that verdict
is its case's current one. Nothing but a person supersedes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from memtrace_collector.store.queue import QueuedCase
from memtrace_collector.store.short_verdicts import MAX_LISTED, ShortVerdict


class JudgementRow(NamedTuple):
    """What of a judgement is counted."""

    judged: int
    """The revision that was judged."""
    machine_stage: str
    """What the machine finds, at the judgement or, when later facts changed that, now."""
    machine_type: str
    stage: str
    error_type: str
    agreement: str


def judgement_row(verdict: Mapping[str, Any]) -> JudgementRow | None:
    """None: nobody judged it."""
    said = verdict.get("judgement")
    if not said:
        return None
    machine = verdict.get("machine_now") or said["machine"]
    agreement = machine.get("agreement") or said["agreement"]
    return JudgementRow(
        int(said["revision"]),
        machine["stage"],
        machine["error_type"],
        verdict["stage"],
        verdict["error_type"],
        agreement,
    )


def body_of(verdict: Mapping[str, Any]) -> str:
    """The stored form."""
    return json.dumps(verdict, ensure_ascii=False)


def verdict_of(row: Sequence[Any]) -> dict[str, object]:
    """``row``: the stored form, as text or UTF-8."""
    verdict: dict[str, object] = json.loads(row[0])
    return verdict


def revision_of(verdict: Mapping[str, Any]) -> int:
    """Of the stored form."""
    return int(verdict["revision"])


class VerdictStore(Protocol):
    """The verdicts of one tenant."""

    def verdict(self, case_id: str, method: str = "") -> dict[str, object] | None:
        """The current revision; with ``method`` the last that was found by it."""
        ...

    def verdicts(
        self, graph_id: str | None = None, *, history: bool = False
    ) -> list[dict[str, object]]:
        """Current revisions (with ``history`` all), oldest first."""
        ...

    def revisions(self, case_id: str) -> list[dict[str, object]]:
        """Every revision of one case, oldest first."""
        ...

    def short_verdicts(self, limit: int = MAX_LISTED) -> list[ShortVerdict]:
        """Current revisions in short, newest first; of more than ``limit``, those."""
        ...

    def verdict_counts(self) -> dict[tuple[str, str, str], int]:
        """Current verdicts by stage, type and method."""
        ...

    def judge(self, verdict: dict[str, object], case: QueuedCase, now_ns: int) -> bool:
        """Store what a person says of a case as its current verdict, or what stands again when
        that is withdrawn; the case is due at once, for the verdict to be delivered. One
        transaction. False, and no change, when that revision exists, or the one before it does
        not (any more): what was erased does not come back.
        """
        ...

    def amend(self, verdict: dict[str, object]) -> bool:
        """Write a person's verdict again, with what the machine finds by now. False, and no
        change, when it is not the current revision any more.
        """
        ...

    def judgement_counts(self) -> dict[tuple[str, str], int]:
        """Judgements in force by stage of the machine's finding and by agreement."""
        ...
