"""The receipt of an answer: what was considered for it, and what became of each candidate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.terms import terms
from memtrace_otel import semconv, variables

INJECTED, NOT_INJECTED, CUT = "injected", "returned, not injected", "cut"
RETURNED = "returned"
_PROMPTING = frozenset((semconv.STEP_ASSEMBLE, semconv.STEP_ANSWER))


class Candidate(NamedTuple):
    """One reference in one read. ``rank`` from 1; None where the sender did not say.

    ``reason``: why it was cut. ``used``: does the reply hold words of its text that the
    question does not; None where texts are not known.
    """

    ref: str
    rank: int | None
    score: float | None
    outcome: str
    reason: str = ""
    used: bool | None = False


class Read(NamedTuple):
    """An operation of the turn that delivered or cut something, best candidate first."""

    operation: Operation
    candidates: tuple[Candidate, ...]

    def of_record(self, record: str) -> list[Candidate]:
        """The candidates that are versions of a record (``kind:id``)."""
        return [item for item in self.candidates if variables.record_of(item.ref) == record]


def receipt(case: Case) -> list[Read]:
    """Every read of the answer's turn with its candidates, oldest first."""
    turn = [case.operations[key] for key in case.turn if key in case.operations]
    reads = [item for item in turn if (item.delivered or item.dropped) and not item.composite]
    reads.sort(key=lambda item: (item.start_ns, item.key))
    injected = _injected((*turn, case.answer))
    wording = _Wording(case, turn)
    return [Read(item, tuple(_candidates(item, injected, wording))) for item in reads]


def read_alone(operation: Operation) -> Read:
    """A read without its answer: what became of what it returned is not looked at."""
    scores = (*operation.scores, *([None] * len(operation.delivered)))
    returned = [
        Candidate(ref, rank, score, RETURNED, used=None)
        for rank, (ref, score) in enumerate(zip(operation.delivered, scores), 1)
    ]
    return Read(operation, (*returned, *_cut(operation)))


def matching_records(case: Case, what: str) -> list[str]:
    """Records that ``what`` names, else candidates of the turn whose text holds it."""
    if what.partition(":")[0] in semconv.KINDS:
        return [variables.record_of(what)]
    needle = what.casefold()
    refs = (item.ref for read in receipt(case) for item in read.candidates)
    found = [ref for ref in refs if needle in case.texts.get(ref, "").casefold()]
    return list(dict.fromkeys(map(variables.record_of, found)))


class _Wording:
    """Which words of the reply are not those of the question."""

    def __init__(self, case: Case, turn: Iterable[Operation]) -> None:
        self._texts = case.texts
        asked = (ref for item in turn for ref in item.inputs if _is_query(ref))
        self._reply = self._terms(case.answer.outputs)
        self._own = self._reply - self._terms(asked)

    def shows(self, ref: str) -> bool | None:
        text = self._terms((ref,))
        return bool(text & self._own) if text and self._reply else None

    def _terms(self, refs: Iterable[str]) -> set[str]:
        return {term for ref in refs for term in terms(self._texts.get(ref, ""))}


def _candidates(
    read: Operation, injected: frozenset[str], wording: _Wording
) -> Iterator[Candidate]:
    scores = (*read.scores, *([None] * len(read.delivered)))
    for rank, (ref, score) in enumerate(zip(read.delivered, scores), 1):
        if ref in injected:
            yield Candidate(ref, rank, score, INJECTED, used=wording.shows(ref))
        else:
            yield Candidate(ref, rank, score, NOT_INJECTED)
    yield from _cut(read)


def _cut(read: Operation) -> Iterator[Candidate]:
    for item in read.dropped:
        yield Candidate(item.ref, item.rank, item.score, CUT, item.reason)


def _injected(operations: Iterable[Operation]) -> frozenset[str]:
    """What went into a prompt of this turn."""
    return frozenset(ref for item in operations if item.step in _PROMPTING for ref in item.inputs)


def _is_query(ref: str) -> bool:
    return ref.startswith(f"{semconv.KIND_QUERY}:")
