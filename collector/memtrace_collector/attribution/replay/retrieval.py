"""What a recorded read would have delivered, had one more value been there. Pure arithmetic.

Recorded scores, ranks and limits decide; where they do not, the caller says what is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import NamedTuple

from msgspec import structs

from memtrace_collector.graph.facts import Operation

_RANKED_BY_SCORE = frozenset({"limit", "threshold", "rerank", "other", "budget"})
"""Reasons for which a candidate lost by its place; others hid it whatever its place."""


class Candidate(NamedTuple):
    """``reason``: why it was not delivered; empty when it was."""

    ref: str
    score: float | None = None
    reason: str = ""


class Placed(NamedTuple):
    """What the read delivers now, in order, and the rank of the value that was put in (from 1)."""

    delivered: tuple[str, ...]
    rank: int
    is_delivered: bool


def candidates(op: Operation) -> list[Candidate]:
    """Everything that a read considered and ranked: the delivered in order, then the dropped."""
    scores = (*op.scores, *(None for _ in op.delivered))
    kept = [Candidate(ref, score) for ref, score in zip(op.delivered, scores)]
    dropped = sorted(
        (entry for entry in op.dropped if entry.reason in _RANKED_BY_SCORE),
        key=lambda entry: entry.rank if entry.rank is not None else math.inf,
    )
    return kept + [Candidate(entry.ref, entry.score, entry.reason) for entry in dropped]


def capacity(op: Operation) -> int | None:
    """How many values the read could deliver; ``None``: no limit is known."""
    k = number(op.limits.get("k"))
    if k is not None:
        return max(int(k), len(op.delivered))
    cut = any(entry.reason in ("limit", "rerank") for entry in op.dropped)
    return len(op.delivered) if cut else None


def score_of(op: Operation, ref: str) -> float | None:
    """The score with which a read considered a reference."""
    return next((c.score for c in candidates(op) if c.ref == ref and c.score is not None), None)


def greater_is_better(op: Operation) -> bool | None:
    """How scores of this read are ordered; ``None``: it is not said and cannot be seen."""
    if op.score_kind == "distance":
        return False
    if op.score_kind in ("similarity", "bm25", "fused", "cross_encoder"):
        return True
    known = [score for score in op.scores if score is not None]
    falls = known == sorted(known, reverse=True)
    rises = known == sorted(known)
    return None if falls == rises else falls


def by_score(op: Operation, ref: str, score: float, *, instead_of: str = "") -> Placed | None:
    """The read with ``ref`` at the place that its score gives it, after its equals.

    ``None`` when the scores of this read cannot be compared with it.
    """
    better = greater_is_better(op)
    others = [c for c in candidates(op) if c.ref not in (ref, instead_of)]
    if better is None or any(c.score is None for c in others if not c.reason):
        return None
    threshold = number(op.limits.get("threshold"))
    sign = 1 if better else -1
    ahead = [c.score is None or sign * c.score >= sign * score for c in others]
    place = next((i for i, is_ahead in enumerate(ahead) if not is_ahead), len(others))
    passes = threshold is None or sign * score >= sign * threshold
    return _placed(op, others, ref, place, passes=passes)


def at_rank(
    op: Operation,
    ref: str,
    rank: int,
    *,
    instead_of: str = "",
    keep: Container[str] = (),
) -> Placed:
    """The read with ``ref`` delivered at ``rank`` (from 1), or last when there is less room.

    Who falls out is the lowest ranked that is not in ``keep``; where all are, there is
    no room and ``ref`` is not delivered.
    """
    others = [c for c in candidates(op) if c.ref not in (ref, instead_of)]
    limit = capacity(op)
    last = limit if limit is not None else sum(not c.reason for c in others) + 1
    place = max(0, min(rank, last) - 1)
    if limit is None or len(op.delivered) < limit or instead_of in op.delivered:
        return _placed(op, others, ref, place)
    out = next((c for c in reversed(op.delivered) if c not in keep and c != ref), None)
    if ref in op.delivered or out is None:
        return Placed(op.delivered, place + 1, ref in op.delivered)
    kept = [c for c in op.delivered if c != out]
    kept.insert(min(place, len(kept)), ref)
    return Placed(tuple(kept), kept.index(ref) + 1, is_delivered=True)


def last_within(op: Operation, ref: str, *, keep: Container[str] = ()) -> Placed:
    """The read with ``ref`` as the last that it delivers."""
    return at_rank(op, ref, len(op.delivered) + 1, keep=keep)


def in_place_of(op: Operation, ref: str, old: str) -> Placed | None:
    """The read with ``ref`` where ``old`` stood; ``None`` when it did not consider ``old``."""
    refs = [c.ref for c in candidates(op)]
    if old not in refs:
        return None
    place = refs.index(old)
    if not candidates(op)[place].reason:
        return at_rank(op, ref, place + 1, instead_of=old)
    return Placed(op.delivered, place + 1, is_delivered=False)


def with_delivered(op: Operation, delivered: tuple[str, ...]) -> Operation:
    """The read as it would have been recorded, had it delivered these."""
    scores = tuple(score_of(op, ref) for ref in delivered)
    return structs.replace(op, delivered=delivered, scores=scores)


def _placed(
    op: Operation, others: Sequence[Candidate], ref: str, place: int, *, passes: bool = True
) -> Placed:
    """Whoever is moved out of the limit falls out; whom a freed place lets in moves up."""
    limit = capacity(op)
    fits = passes and (limit is None or place < limit)
    entering = [Candidate(ref)] if fits else []
    ranked = [*others[:place], *entering, *others[place:]]
    moves_up = ("", "limit", "rerank") if limit is not None else ("",)
    room = len(op.delivered) + fits
    kept = [c.ref for c in ranked if c.reason in moves_up]
    kept = kept[: room if limit is None else min(limit, room)]
    return Placed(tuple(kept), place + 1, ref in kept)


def number(value: object) -> float | None:
    """A limit as a number; booleans and what is no number are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
