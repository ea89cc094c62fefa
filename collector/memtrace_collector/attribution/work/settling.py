"""When a case is judged, and when it is looked at again. Pure but for what was waited for."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from memtrace_collector.graph.case import Case
from memtrace_collector.graph.loader import MAX_OPERATIONS
from memtrace_collector.store.queue import JUDGED, UNRESOLVED, WAITING, Lease, Schedule

FIRST_AGAIN_SECONDS, LONGEST_AGAIN_SECONDS = 2.0, 600.0
"""How soon a judged case whose graph changed is judged again: doubles until a verdict changes."""
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 1.0, 30.0
"""How often a case that is not settled is looked at: less often the longer it takes."""
LONGEST_UNRESOLVED_SECONDS = 3_600.0
WATCHED_SECONDS = 7 * 86_400.0
"""So long after an answer its verdict is looked at again while something is still missing."""
MAX_WAITED_FOR = 10_000
_NS = 1_000_000_000


class WaitedFor:
    """What was waited for in vain: a span that was lost for good holds up one case, once."""

    def __init__(self, limit: int = MAX_WAITED_FOR) -> None:
        self._limit = limit
        self._known: dict[str, None] = {}

    def add(self, open_ends: AbstractSet[str]) -> None:
        """Remember these; beyond the limit the oldest are forgotten, and waited for again."""
        for each in sorted(open_ends):
            self._known.pop(each, None)
            self._known[each] = None
        while len(self._known) > self._limit:
            del self._known[next(iter(self._known))]

    def remaining(self, open_ends: AbstractSet[str]) -> set[str]:
        """Those that were not waited for yet."""
        return {each for each in open_ends if each not in self._known}


def open_ends(case: Case) -> frozenset[str]:
    """What may still be on its way: numbers missing in a process, producers nobody has seen.

    An open tail is none: nothing is known to come after the last number seen. Nor is a lineage
    that is incomplete because the case is too large to load.
    """
    gaps = {f"{loss.process}/{loss.first}-{loss.last}" for loss in case.closure.losses}
    if case.lineage == "incomplete" and len(case.operations) < MAX_OPERATIONS:
        gaps.add(f"producers of {case.answer.key}")
    return frozenset(gaps)


def look_again(case: Case, lease: Lease, now_ns: int, deadline_ns: int) -> Schedule:
    """The next look at a case that is not settled, at its deadline at the latest."""
    since_ns = lease.since_ns or now_ns
    pause = _clamped(now_ns - since_ns, FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS)
    return Schedule(
        state=WAITING if not lease.is_judged else JUDGED,
        due_ns=min(deadline_ns, now_ns + pause),
        not_before_ns=now_ns + int(FIRST_LOOK_SECONDS * _NS),
        step_ns=lease.step_ns,
        since_ns=since_ns,
        graph_ids=concerned(case),
    )


def after_verdict(
    case: Case, lease: Lease, now_ns: int, *, changed: bool, is_settled: bool
) -> Schedule:
    """The next look at a judged case: when a graph changes; unsettled, from time to time too."""
    first = int(FIRST_AGAIN_SECONDS * _NS)
    step = first if changed else max(first, lease.step_ns * 2)
    step = min(step, int(LONGEST_AGAIN_SECONDS * _NS))
    age = now_ns - case.answer.end_ns
    watched = not is_settled and age < WATCHED_SECONDS * _NS
    return Schedule(
        state=JUDGED,
        due_ns=now_ns + max(step, age // 2) if watched else None,
        not_before_ns=now_ns + step,
        step_ns=step,
        graph_ids=concerned(case),
    )


def unresolved_again(lease: Lease, now_ns: int) -> Schedule:
    """The next look for an answer that a flag named before it arrived."""
    since_ns = lease.since_ns or now_ns
    pause = _clamped(now_ns - since_ns, FIRST_LOOK_SECONDS, LONGEST_UNRESOLVED_SECONDS)
    return Schedule(state=UNRESOLVED, due_ns=now_ns + pause, since_ns=since_ns)


def concerned(case: Case) -> frozenset[str]:
    """The graphs whose changes may change the verdict."""
    return case.readable_graphs | {case.answer.graph_id}


def _clamped(elapsed_ns: int, least: float, most: float) -> int:
    return max(int(least * _NS), min(elapsed_ns, int(most * _NS)))
