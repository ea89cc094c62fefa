"""What was considered for an answer: the receipt, and where one record stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from memtrace_collector.graph import content, receipt
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions.answered import MAX_NESTED, Found, Paged, Texts, each
from memtrace_collector.graph.questions.answers import case_of
from memtrace_collector.graph.questions.arguments import Answer, Record
from memtrace_collector.graph.questions.operations import operation_at, values_of
from memtrace_collector.graph.questions.recalled import (
    Recalled,
    Sentence,
    fate,
    recalled,
    state,
)
from memtrace_collector.graph.questions.shapes import (
    Json,
    operation_json,
    parse_answer,
    span_json,
    time_json,
)
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.receipt import CUT, Candidate, Read
from memtrace_otel import variables


class Why(Paged, frozen=True, kw_only=True):
    """The receipt of an answer: each read of its turn with every candidate, its rank and
    score, whether it was returned, injected into the prompt or cut and for what reason, and
    whether the reply shows its words."""

    answer: Answer
    about: Annotated[
        str,
        msgspec.Meta(
            max_length=2_000,
            description="A record or a text: also say why that was recalled, or was not.",
        ),
    ] = ""


class Rank(Paged, frozen=True, kw_only=True):
    """Where one record stood in a read: was it a candidate, at which rank, with which score,
    returned or cut and why, and what stood above it. For every read of an answer's turn, or
    for one retrieval."""

    record: Record
    span: Annotated[
        str,
        msgspec.Meta(max_length=49, description="TRACE[:SPAN] of an answer, or of one retrieval."),
    ]


def why(reader: GraphReader, answer: str, about: str, texts: Texts) -> Found[Read]:
    """The reads of the answer's turn with their candidates, and why ``about`` was (not) among
    them.

    Raises:
        WrongUseError: the answer is not written as TRACE[:SPAN].
        NotFoundError: no answer is known there.
    """
    case = case_of(reader, answer)
    reads = receipt.receipt(case)
    lookups = Lookups(reader)
    said = next((case.texts[ref] for ref in case.answer.outputs if ref in case.texts), None)
    head = {
        "answer": span_json(case.answer.key),
        "graph_id": case.answer.graph_id,
        "text": texts.one(said),
        "lineage": case.lineage,
        "about": about_json(lookups, case, recalled(lookups, case, reads, about), texts)
        if about
        else None,
    }
    return Found(head, "reads", reads, each(lambda read: _read_json(case, read, texts)))


def rank(reader: GraphReader, record: str, span: str, texts: Texts) -> Found[Read]:
    """Where ``record`` (or a reference to a version of it) stood in each read.

    Raises:
        WrongUseError: the span is not written as TRACE[:SPAN].
        NotFoundError: there is neither an answer nor a read.
    """
    name = variables.record_of(record) if "@" in record else record
    operation = operation_at(reader, parse_answer(span))
    if operation is not None and (operation.delivered or operation.dropped):
        reads = [receipt.read_alone(operation)]
    else:
        reads = receipt.receipt(case_of(reader, span))
    lookups = Lookups(reader)
    return Found(
        {"record": name, "span": span},
        "reads",
        reads,
        each(lambda read: _rank_json(lookups, read, name, texts)),
    )


def ask_why(reader: GraphReader, given: Why, texts: Texts) -> Found[Read]:
    return why(reader, given.answer, given.about, texts)


def ask_rank(reader: GraphReader, given: Rank, texts: Texts) -> Found[Read]:
    return rank(reader, given.record, given.span, texts)


def outcome_of(item: Candidate) -> str:
    """What became of a candidate, in a few words."""
    return f"{CUT}: {item.reason}" if item.outcome == CUT else item.outcome


def about_json(lookups: Lookups, case: Case, found: Recalled, texts: Texts) -> Json:
    """Why something was recalled, or was not. ``says``: what is to be known before, or empty."""
    refs = {ref for told in found.told for ref in (told.ref, *told.beaten_by) if ref}
    graph_ids = (*(told.graph_id for told in found.told if told.graph_id), *case.readable_graphs)
    values = values_of(lookups.reader, graph_ids, refs) if refs else {}

    def text_of(ref: str) -> Any:
        return texts.one(content.plain_text(values[ref])) if ref in values else None

    return {
        "what": found.what,
        "records": [told.record for told in found.told if told.is_record],
        "says": found.says,
        "found": [
            {
                "record": told.record,
                "ref": told.ref,
                "graph_id": told.graph_id,
                "outcome": told.outcome,
                "text": text_of(told.ref),
                "says": [
                    {"text": line.text, "span": line.operation and span_json(line.operation)}
                    for line in told.says
                ],
                "beaten_by": [{"ref": ref, "text": text_of(ref)} for ref in told.beaten_by],
            }
            for told in found.told
        ],
    }


def _line(sentence: Sentence) -> str:
    return f"{sentence.text} ({sentence.operation})" if sentence.operation else sentence.text


def _read_json(case: Case, read: Read, texts: Texts) -> Json:
    operation = read.operation
    return {
        "name": operation.name,
        "operation": str(operation.key),
        "span": span_json(operation.key),
        "graph_id": operation.graph_id,
        "time": time_json(operation.start_ns),
        "limits": dict(operation.limits),
        "score_kind": operation.score_kind,
        "candidates": [_candidate_json(case, operation, item, texts) for item in read.candidates],
    }


def _candidate_json(case: Case, read: Operation, item: Candidate, texts: Texts) -> Json:
    return {
        "ref": item.ref,
        "rank": item.rank,
        "score": item.score,
        "outcome": outcome_of(item),
        "used": item.used,
        "beaten_by": list(read.delivered) if item.outcome == CUT else [],
        "text": texts.one(case.texts.get(item.ref)),
    }


def _rank_json(lookups: Lookups, read: Read, record: str, texts: Texts) -> Json:
    operation = read.operation
    met = read.of_record(record)
    graph_ids = (operation.graph_id, *operation.reads)
    writes = next(filter(None, (lookups.history(g, record) for g in graph_ids)), ())
    return {
        **operation_json(operation),
        "is_candidate": bool(met),
        "candidates": [
            {
                "ref": item.ref,
                "rank": item.rank,
                "score": item.score,
                "outcome": outcome_of(item),
                "used": item.used,
            }
            for item in met
        ],
        "says": [fate(operation, item) for item in met] or ["not a candidate of this read"],
        "state": _line(state(writes, operation.start_ns)),
        "limits": dict(operation.limits),
        "score_kind": operation.score_kind,
        "above": _above_json(lookups, operation, met, texts),
    }


def _above_json(
    lookups: Lookups, read: Operation, met: Sequence[Candidate], texts: Texts
) -> list[Json]:
    """What was returned before the record; everything, when it was not returned."""
    returned = {item.ref for item in met} & set(read.delivered)
    last = min((read.delivered.index(ref) for ref in returned), default=len(read.delivered))
    before = read.delivered[: min(last, MAX_NESTED)]
    found = values_of(lookups.reader, (read.graph_id, *read.reads), before)
    return [
        {
            "ref": ref,
            "rank": number,
            "score": read.score_of(ref),
            "text": texts.one(content.plain_text(found[ref])) if ref in found else None,
        }
        for number, ref in enumerate(before, 1)
    ]
