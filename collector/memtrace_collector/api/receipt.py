"""The receipt of an answer: what was considered for it, what became of each candidate. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memtrace_collector.api.questions import Json
from memtrace_collector.api.shapes import span_json, time_json
from memtrace_collector.graph.case import Case, Write
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.terms import terms
from memtrace_otel import semconv, variables

INJECTED, NOT_INJECTED = "injected", "returned, not injected"


class Candidate(NamedTuple):
    """One reference in one read. ``rank`` from 1; None where the sender did not say."""

    read: Operation
    ref: str
    rank: int | None
    score: float | None
    outcome: str


def receipt(case: Case) -> Json:
    """Every read of the answer's turn with its candidates, and the answer's text if known."""
    prompt = _prompt(case)
    reads = [_read_json(case, read, prompt) for read in _reads(case)]
    return {
        "answer": span_json(case.answer.key),
        "graph_id": case.answer.graph_id,
        "text": next((case.texts[ref] for ref in case.answer.outputs if ref in case.texts), None),
        "lineage": case.lineage,
        "reads": reads,
        "about": None,
    }


def about(
    case: Case, what: str, records: Sequence[str], histories: Mapping[str, Sequence[Write]]
) -> Json:
    """Why ``what`` was recalled, or was not.

    Args:
        case: the answer's case.
        what: the record, reference or text that was asked about.
        records: the records (``kind:id``) that it means, best match first.
        histories: their writes in order.
    """
    says = [
        line
        for record in records
        for line in _about_record(case, record, histories.get(record, ()))
    ]
    if not records:
        says = [f"nothing that was recorded for this owner matches {what!r}"]
    return {"what": what, "records": list(records), "says": says}


def matching_records(case: Case, what: str) -> list[str]:
    """Records of the case that ``what`` names, or whose text holds it."""
    if what.partition(":")[0] in semconv.KINDS:
        return [variables.record_of(what) if "@" in what else what]
    needle = what.casefold()
    candidates = (candidate.ref for read in _reads(case) for candidate in _candidates(case, read))
    refs = [ref for ref in candidates if needle in case.texts.get(ref, "").casefold()]
    return list(dict.fromkeys(map(variables.record_of, refs)))


def _about_record(case: Case, record: str, writes: Sequence[Write]) -> Iterator[str]:
    yield f"{record}:"
    prompt = _prompt(case)
    reads = _reads(case)
    for read in reads:
        met = [
            item
            for item in _candidates(case, read, prompt)
            if variables.record_of(item.ref) == record
        ]
        for item in met:
            yield f"  {read.name} {read.key}: {_fate(item)}"
        if not met:
            yield f"  {read.name} {read.key}: not a candidate"
    if not reads:
        yield "  no read was recorded for this answer"
    yield f"  {_state(writes, case.answer.start_ns)}"


def _fate(item: Candidate) -> str:
    rank = "at an unknown rank" if item.rank is None else f"at rank {item.rank}"
    score = "" if item.score is None else f" with {item.score:.3f}"
    if item.outcome in (INJECTED, NOT_INJECTED):
        return f"{item.outcome} {rank}{score}"
    return f"{item.outcome} {rank}{score}; {_bar(item.read)}"


def _bar(read: Operation) -> str:
    if not read.delivered:
        return "nothing was returned"
    last = read.delivered[-1]
    score = read.score_of(last)
    return f"the last that was returned is {last}" + (f" with {score:.3f}" if score else "")


def _state(writes: Sequence[Write], at_ns: int) -> str:
    before = [write for write in writes if write.operation.start_ns <= at_ns]
    if not writes:
        return "nobody was seen to write it"
    if not before:
        return f"it was first written after this answer, {time_json(writes[0].operation.start_ns)}"
    current = before[-1]
    when = time_json(current.operation.start_ns)
    if variables.version_of(current.version) == semconv.DELETED_VERSION:
        return f"it had been deleted {when} by {current.operation.key}"
    return f"current then was {current.version}, written {when} by {current.operation.key}"


def _read_json(case: Case, read: Operation, prompt: frozenset[str]) -> Json:
    return {
        "name": read.name,
        "operation": str(read.key),
        "span": span_json(read.key),
        "graph_id": read.graph_id,
        "time": time_json(read.start_ns),
        "limits": dict(read.limits),
        "score_kind": read.score_kind,
        "candidates": [_candidate_json(case, item) for item in _candidates(case, read, prompt)],
    }


def _candidate_json(case: Case, item: Candidate) -> Json:
    dropped = item.outcome not in (INJECTED, NOT_INJECTED)
    return {
        "ref": item.ref,
        "rank": item.rank,
        "score": item.score,
        "outcome": item.outcome,
        "used": _used(case, item.ref) if item.outcome == INJECTED else False,
        "beaten_by": list(item.read.delivered) if dropped else [],
        "text": case.texts.get(item.ref),
    }


def _used(case: Case, ref: str) -> bool | None:
    """Does the reply hold words of this text that the question does not? None: not known."""
    reply = _terms(case, case.answer.outputs)
    text = terms(case.texts.get(ref, ""))
    if not reply or not text:
        return None
    queries = [ref for key in case.turn for ref in case.operations[key].inputs if _is_query(ref)]
    return bool(reply & set(text) - _terms(case, queries))


def _terms(case: Case, refs: Iterable[str]) -> set[str]:
    return {term for ref in refs for term in terms(case.texts.get(ref, ""))}


def _is_query(ref: str) -> bool:
    return ref.startswith(f"{semconv.KIND_QUERY}:")


def _reads(case: Case) -> list[Operation]:
    """What delivered or dropped something in the answer's turn, oldest first."""
    turn = (case.operations[key] for key in case.turn if key in case.operations)
    reads = [item for item in turn if (item.delivered or item.dropped) and not item.composite]
    return sorted(reads, key=lambda item: (item.start_ns, item.key))


def _candidates(
    case: Case, read: Operation, prompt: frozenset[str] | None = None
) -> Iterator[Candidate]:
    injected = _prompt(case) if prompt is None else prompt
    scores = (*read.scores, *([None] * len(read.delivered)))
    for rank, (ref, score) in enumerate(zip(read.delivered, scores), 1):
        yield Candidate(read, ref, rank, score, INJECTED if ref in injected else NOT_INJECTED)
    for item in read.dropped:
        yield Candidate(read, item.ref, item.rank, item.score, f"cut: {item.reason}")


def _prompt(case: Case) -> frozenset[str]:
    """What went into a prompt of this turn."""
    steps = (semconv.STEP_ASSEMBLE, semconv.STEP_ANSWER)
    turn = (case.operations[key] for key in case.turn if key in case.operations)
    return frozenset(
        ref for item in (*turn, case.answer) if item.step in steps for ref in item.inputs
    )
