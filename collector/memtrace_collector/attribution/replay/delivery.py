"""What the answer's own reads would have delivered after a repair, as edits of its prompt. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from memtrace_collector.attribution.carrying.refs import kind, queries_of
from memtrace_collector.attribution.carrying.view import READS, View
from memtrace_collector.attribution.replay import retrieval
from memtrace_collector.attribution.replay.outcome import Step
from memtrace_collector.attribution.replay.repair import (
    DATE,
    PUT,
    REMOVE,
    Repair,
    home_read,
    later_reranks,
)
from memtrace_collector.attribution.replay.retrieval import Placed
from memtrace_collector.attribution.texts import dates
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_otel import semconv

RETRIEVAL = "retrieval"
DELIVERED, STILL_CUT, REMOVED = "delivered", "still_cut", "removed"


class Edit(NamedTuple):
    """One change of the prompt: ``put`` a text in (in place of ``old`` where that stands),
    ``remove`` ``old``, or write the ``day`` beside ``old``.

    ``ahead`` and ``behind``: values ranked before and after it, the nearest first; the last
    ``behind`` are those that it pushes out.
    """

    kind: str
    old: str = ""
    ref: str = ""
    text: str = ""
    day: date | None = None
    is_relative: bool = False
    """Its text has words such as "yesterday", which say nothing without the day."""
    ahead: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """``edits`` is empty when the repair would have changed nothing that was read."""

    edits: tuple[Edit, ...]
    steps: tuple[Step, ...] = ()
    assumed: tuple[str, ...] = ()


def deliver(view: View, repairs: Iterable[Repair], needed: Container[str]) -> list[Delivery]:
    """What the repaired values would have become at the answer's reads, one after the other.

    ``needed``: values that the answer needs as well; where no score decides, none of these is
    pushed out.
    """
    reads: dict[OperationKey, Operation] = {}
    return [_deliver(_Reads(view, reads, needed), repair) for repair in repairs]


class _Reads(NamedTuple):
    """The answer's reads; ``changed`` by the repairs so far."""

    view: View
    changed: dict[OperationKey, Operation]
    needed: Container[str]

    def now(self, op: Operation) -> Operation:
        return self.changed.get(op.key, op)


def _deliver(reads: _Reads, repair: Repair) -> Delivery:
    view = reads.view
    if repair.kind == REMOVE:
        return Delivery((Edit(REMOVE, repair.replaces),), (Step(RETRIEVAL, REMOVED),))
    if repair.kind == DATE:
        return Delivery(tuple(_dates(view)))
    if repair.kind != PUT:
        return Delivery(())
    if repair.ref in view.delivered:
        rank = view.delivered.index(repair.ref)
        step = Step(RETRIEVAL, DELIVERED, rank=rank + 1)
        return Delivery((_put(repair, view.delivered),), (step,), repair.assumed)
    home = home_read(view, repair)
    if home is None:
        step = Step(RETRIEVAL, DELIVERED, assumed=True)
        return Delivery((_put(repair, ()),), (step,), (*repair.assumed, RETRIEVAL))
    return _through_reads(reads, repair, home)


def _dates(view: View) -> Iterable[Edit]:
    for ref in view.shown:
        day = view.declared_times.get(ref)
        if day is not None:
            yield Edit(DATE, ref, day=day)


def _put(repair: Repair, order: Sequence[str]) -> Edit:
    place = order.index(repair.ref) if repair.ref in order else 0
    return Edit(
        PUT,
        old=repair.replaces,
        ref=repair.ref,
        text=repair.text,
        day=repair.day,
        is_relative=any(phrase.relative for phrase in dates.phrases(repair.text, repair.day)),
        ahead=tuple(reversed(order[:place])),
        behind=tuple(order[place + 1 :]),
    )


def _through_reads(reads: _Reads, repair: Repair, home: Operation) -> Delivery:
    view = reads.view
    last = reads.now(home)
    placed, is_assumed = _at_home(reads, repair, last)
    reads.changed[home.key] = retrieval.with_delivered(last, placed.delivered)
    for op in later_reranks(view, home):
        if not placed.is_delivered:
            break
        last = reads.now(op)
        placed, guessed = _at_rerank(reads, repair, last)
        reads.changed[op.key] = retrieval.with_delivered(last, placed.delivered)
        is_assumed |= guessed
    outcome = DELIVERED if placed.is_delivered else STILL_CUT
    step = Step(RETRIEVAL, outcome, is_assumed, placed.rank)
    others = {ref for op in view.reads if op.key != last.key for ref in op.delivered}
    others -= set(home.delivered)
    gone = [
        Edit(REMOVE, ref)
        for ref in last.delivered
        if ref not in placed.delivered and ref not in others
    ]
    edits = tuple(gone)
    if placed.is_delivered:
        put = _put(repair, placed.delivered)
        pushed_out = tuple(each.old for each in gone if each.old != repair.replaces)
        put = put._replace(behind=(*put.behind, *pushed_out))
        edits = (put, *(each for each in gone if each.old != repair.replaces))
    assumed = (*repair.assumed, RETRIEVAL) if is_assumed else repair.assumed
    return Delivery(edits, (step,), assumed)


def _at_home(reads: _Reads, repair: Repair, op: Operation) -> tuple[Placed, bool]:
    """Where the read would have ranked it; whether that had to be assumed."""
    view, keep = reads.view, reads.needed
    if repair.at == op.key:
        inside = retrieval.in_place_of(op, repair.ref, repair.replaces)
        if inside is not None and inside.is_delivered:
            return inside, False
        rank_before = _rank_before(op, repair.ref)
        found = retrieval.at_rank(op, repair.ref, rank_before, keep=keep)
        return found, not found.is_delivered
    asked = set(queries_of(op))
    if repair.at is not None and view.query is not None and view.query not in asked:
        rank = _rank_for_the_question(view, repair.ref)
        if rank is not None:
            found = retrieval.at_rank(op, repair.ref, rank, keep=keep)
            return found, not found.is_delivered
    else:
        score = _recorded_score(view, op, repair.ref)
        if score is not None:
            scored = retrieval.by_score(op, repair.ref, score, instead_of=repair.replaces)
            if scored is not None:
                return scored, False
    return _guess(reads, repair, op), True


def _at_rerank(reads: _Reads, repair: Repair, op: Operation) -> tuple[Placed, bool]:
    score = retrieval.score_of(op, repair.ref)
    if score is not None:
        found = retrieval.by_score(op, repair.ref, score, instead_of=repair.replaces)
        if found is not None:
            return found, False
    return _guess(reads, repair, op), True


def _guess(reads: _Reads, repair: Repair, op: Operation) -> Placed:
    inside = retrieval.in_place_of(op, repair.ref, repair.replaces)
    if inside is not None and inside.is_delivered:
        return inside
    return retrieval.last_within(op, repair.ref, keep=reads.needed)


def _rank_before(op: Operation, ref: str) -> int:
    """The rank with which a value reached this read, where that is recorded; else the last."""
    values = [each for each in op.inputs if kind(each) != semconv.KIND_QUERY]
    if op.step == semconv.STEP_RERANK and ref in values:
        return values.index(ref) + 1
    ranks = [e.rank for e in op.dropped if e.ref == ref and e.rank is not None and e.rank > 0]
    return ranks[0] if ranks else len(op.delivered) + 1


def _recorded_score(view: View, op: Operation, ref: str) -> float | None:
    """The value's score in this read, or in another of the same system for the same query."""
    own = retrieval.score_of(op, ref)
    if own is not None:
        return own
    asked = set(queries_of(op))
    alike = (
        other
        for other in view.case.operations.values()
        if other.step == op.step
        and (other.system, other.score_kind) == (op.system, op.score_kind)
        and asked & set(queries_of(other))
    )
    scores = (retrieval.score_of(other, ref) for other in alike)
    return next((score for score in scores if score is not None), None)


def _rank_for_the_question(view: View, ref: str) -> int | None:
    """Its rank where the user's own question was searched with."""
    ranks = [
        op.delivered.index(ref) + 1
        for op in view.case.operations.values()
        if op.step in READS and view.query in op.inputs and ref in op.delivered
    ]
    return min(ranks, default=None)
