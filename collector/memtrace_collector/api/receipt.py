"""The receipt of an answer as an answer of the API: its JSON form and what it says in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memtrace_collector.api.questions import Json
from memtrace_collector.api.shapes import span_json, time_json
from memtrace_collector.graph.case import Case, Write
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.history import current_at, is_deleted
from memtrace_collector.graph.receipt import CUT, Candidate, Read


def receipt_json(case: Case, reads: Sequence[Read]) -> Json:
    """The reads of the answer's turn with their candidates, and the answer's text if known."""
    return {
        "answer": span_json(case.answer.key),
        "graph_id": case.answer.graph_id,
        "text": next((case.texts[ref] for ref in case.answer.outputs if ref in case.texts), None),
        "lineage": case.lineage,
        "reads": [_read_json(case, read) for read in reads],
        "about": None,
    }


def about_json(
    case: Case,
    what: str,
    reads: Sequence[Read],
    histories: Mapping[str, Sequence[Write]],
) -> Json:
    """Why ``what`` was recalled, or was not.

    Args:
        case: the answer's case.
        what: the record, reference or text that was asked about.
        reads: the receipt.
        histories: the records (``kind:id``) that it means, best match first, each with its
            writes in order.
    """
    says = [
        line
        for record, writes in histories.items()
        for line in _about_record(case, record, reads, writes)
    ]
    if not histories:
        says = [f"nothing that was recorded for this owner matches {what!r}"]
    return {"what": what, "records": list(histories), "says": says}


def _about_record(
    case: Case, record: str, reads: Sequence[Read], writes: Sequence[Write]
) -> Iterator[str]:
    yield f"{record}:"
    for read in reads:
        where = f"  {read.operation.name} {read.operation.key}"
        met = read.of_record(record)
        yield from (f"{where}: {_fate(read.operation, item)}" for item in met)
        if not met:
            yield f"{where}: not a candidate"
    if not reads:
        yield "  no read was recorded for this answer"
    yield f"  {_state(writes, case.answer.start_ns)}"


def _fate(read: Operation, item: Candidate) -> str:
    rank = "at an unknown rank" if item.rank is None else f"at rank {item.rank}"
    score = "" if item.score is None else f" with {item.score:.3f}"
    bar = f"; {_bar(read)}" if item.outcome == CUT else ""
    return f"{_outcome(item)} {rank}{score}{bar}"


def _bar(read: Operation) -> str:
    if not read.delivered:
        return "nothing was returned"
    last = read.delivered[-1]
    score = read.score_of(last)
    with_score = "" if score is None else f" with {score:.3f}"
    return f"the last that was returned is {last}{with_score}"


def _state(writes: Sequence[Write], at_ns: int) -> str:
    if not writes:
        return "nobody was seen to write it"
    current = current_at(writes, at_ns)
    if current is None:
        return f"it was first written after this answer, {time_json(writes[0].operation.start_ns)}"
    when = time_json(current.operation.start_ns)
    if is_deleted(current.version):
        return f"it had been deleted {when} by {current.operation.key}"
    return f"current then was {current.version}, written {when} by {current.operation.key}"


def _read_json(case: Case, read: Read) -> Json:
    operation = read.operation
    return {
        "name": operation.name,
        "operation": str(operation.key),
        "span": span_json(operation.key),
        "graph_id": operation.graph_id,
        "time": time_json(operation.start_ns),
        "limits": dict(operation.limits),
        "score_kind": operation.score_kind,
        "candidates": [_candidate_json(case, operation, item) for item in read.candidates],
    }


def _candidate_json(case: Case, read: Operation, item: Candidate) -> Json:
    return {
        "ref": item.ref,
        "rank": item.rank,
        "score": item.score,
        "outcome": _outcome(item),
        "used": item.used,
        "beaten_by": list(read.delivered) if item.outcome == CUT else [],
        "text": case.texts.get(item.ref),
    }


def _outcome(item: Candidate) -> str:
    return f"{CUT}: {item.reason}" if item.outcome == CUT else item.outcome
