"""Answers as every view lists them: what was asked and said, and what is known against them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from memtrace_collector.api.explorer.parts import EXCERPT_CHARS, text_json
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.attribution.verdict import MEMORY_STAGES
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.graph import content, flags
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.questions.operations import values_of
from memtrace_collector.graph.questions.shapes import span_json
from memtrace_collector.graph.reader import GraphReader
from memtrace_otel import semconv

FAILED, CLEARED, UNEXPLAINED = "failed", "cleared", "unexplained"
FLAGGED, UNFLAGGED = "flagged", "unflagged"
MAX_JUDGED = 500
"""Answers of one view of which verdicts are looked up."""
_NOT_MEMORY = "not_memory"


class Judgement(NamedTuple):
    """What is known against an answer: ``failed`` (a memory fault was found), ``cleared``
    (flagged, and no memory fault), ``unexplained``, ``flagged`` (not judged yet), ``unflagged``.
    """

    outcome: str
    verdict: Mapping[str, Any] | None = None


def judgements(stores: Stores, answers: Sequence[Operation]) -> dict[OperationKey, Judgement]:
    """Of at most :data:`MAX_JUDGED` answers; the others are left out."""
    looked_at = answers[:MAX_JUDGED]
    flagged = _flagged(stores.graphs, looked_at)
    return {
        answer.key: _judgement(stores.cases.verdict(case_id(answer)), answer.key in flagged)
        for answer in looked_at
    }


def answers_json(
    reader: GraphReader,
    answers: Sequence[Operation],
    judged: Mapping[OperationKey, Judgement],
) -> list[Json]:
    """Each with the question, the reply (both shortened) and the verdict in short."""
    texts = _texts(reader, answers)
    return [_answer_json(answer, judged.get(answer.key), texts) for answer in answers]


def short_verdict_json(verdict: Mapping[str, Any]) -> Json:
    """What a link to its failure says of a verdict."""
    return {name: verdict[name] for name in ("id", "stage", "error_type")}


def _judgement(verdict: Mapping[str, Any] | None, is_flagged: bool) -> Judgement:
    if verdict is None:
        return Judgement(FLAGGED if is_flagged else UNFLAGGED)
    stage = verdict["stage"]
    if stage in MEMORY_STAGES:
        return Judgement(FAILED, verdict)
    return Judgement(CLEARED if stage == _NOT_MEMORY else UNEXPLAINED, verdict)


def _flagged(reader: GraphReader, answers: Sequence[Operation]) -> set[OperationKey]:
    targets = {target for answer in answers for target in answer.flag_targets}
    found = (flags.resolve(reader, flag) for flag in reader.flags_at(targets))
    return {answer.key for answer in found if answer is not None}


def _texts(reader: GraphReader, answers: Sequence[Operation]) -> dict[tuple[str, str], str]:
    """By graph and reference."""
    found: dict[tuple[str, str], str] = {}
    for graph_id in {answer.graph_id for answer in answers}:
        refs = {ref for each in answers if each.graph_id == graph_id for ref in _told(each)}
        values = values_of(reader, [graph_id], refs)
        found.update({(graph_id, ref): content.plain_text(values[ref]) for ref in values})
    return found


def _told(answer: Operation) -> list[str]:
    return [*_of_kind(answer.inputs, semconv.KIND_QUERY), *answer.outputs]


def _of_kind(refs: Collection[str], kind: str) -> list[str]:
    return [ref for ref in refs if ref.startswith(f"{kind}:")]


def _answer_json(
    answer: Operation, judgement: Judgement | None, texts: Mapping[tuple[str, str], str]
) -> Json:
    verdict = judgement.verdict if judgement else None
    asked = _of_kind(answer.inputs, semconv.KIND_QUERY)
    said = _of_kind(answer.outputs, semconv.KIND_ANSWER)
    return {
        "span": span_json(answer.key),
        "graph_id": answer.graph_id,
        "service": answer.service,
        "time_ns": answer.start_ns,
        "question": _first(answer.graph_id, asked, texts),
        "text": _first(answer.graph_id, said, texts),
        "outcome": judgement.outcome if judgement else None,
        "verdict": verdict and short_verdict_json(verdict),
    }


def _first(
    graph_id: str, refs: Collection[str], texts: Mapping[tuple[str, str], str]
) -> Json | None:
    known = (texts[graph_id, ref] for ref in refs if (graph_id, ref) in texts)
    return text_json(next(known, None), EXCERPT_CHARS)
