"""The questions for whoever explores: those about the graphs, and those about verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from memtrace_collector.attribution.explain import without_quotes
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph import invariants
from memtrace_collector.graph.questions.answered import (
    MAX_TEXT_CHARS,
    Found,
    Paged,
    Texts,
    each,
)
from memtrace_collector.graph.questions.answers import answer_at
from memtrace_collector.graph.questions.arguments import Answer, AnyGraphId
from memtrace_collector.graph.questions.catalog import GRAPH_QUESTIONS
from memtrace_collector.graph.questions.operations import operation_at
from memtrace_collector.graph.questions.question import Question, named
from memtrace_collector.graph.questions.shapes import Json, span_json, span_key
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.store.base import CaseStore

_WITHOUT_CONTENT = (
    "id", "revision", "created", "graph_id", "answer", "stage", "error_type", "aspect",
    "mechanism", "decisive", "last_right", "first_wrong", "also", "score", "basis", "method",
    "alternatives", "lineage", "absence", "missing", "case_trace",
)  # fmt: skip
"""What of a verdict quotes nothing."""
_Name = Annotated[str, msgspec.Meta(max_length=100)]


class Stores(NamedTuple):
    """What a question may read."""

    graphs: GraphReader
    cases: CaseStore


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was found out about a flagged answer: stage and type of the failure, the decisive
    operation, what was last right and first wrong, the evidence, alternatives, what is missing."""

    answer: Answer


class Verdicts(Paged, frozen=True, kw_only=True):
    """The current verdicts on flagged answers, oldest first, in short."""

    graph: AnyGraphId = ""
    stage: Annotated[
        _Name, msgspec.Meta(description="Only this stage, such as update; empty: all.")
    ] = ""
    type: Annotated[
        _Name, msgspec.Meta(description="Only this type, such as overwritten; empty: all.")
    ] = ""


class Invariants(Paged, frozen=True, kw_only=True):
    """Faults found without any flag: a superseded version delivered (stale), a deleted record
    delivered (zombie), another graph's (foreign), decided but never written (lost write), a
    record that flaps, an empty retrieval."""

    graph: AnyGraphId = ""


def explore(
    stores: Stores, question: str, arguments: Mapping[str, Any], text_chars: int = MAX_TEXT_CHARS
) -> Json:
    """The answer to one question, bounded; captured texts shortened to ``text_chars``, at
    most :data:`MAX_TEXT_CHARS`, and none with 0.

    Raises:
        WrongUseError: there is no such question, or the arguments do not fit it.
    """
    texts = Texts(max(0, min(text_chars, MAX_TEXT_CHARS)))
    return named(QUESTIONS, question).answer(stores, arguments, texts)


def invariants_found(reader: GraphReader, graph_id: str) -> Found[invariants.Finding]:
    """What the watched invariants found; no graph id: in all graphs."""
    if graph_id:
        known_graph(reader, graph_id)
    ids = [graph_id] if graph_id else [item.graph_id for item in reader.graphs()]
    found = [item for each_id in ids for item in invariants.check(reader, each_id)]
    return Found({}, "invariants", found, each(_invariant_json))


def _ask_verdict(stores: Stores, given: Verdict, texts: Texts) -> Found[Json]:
    found = stores.cases.verdict(case_id(answer_at(stores.graphs, given.answer)))
    if found is None:
        raise NotFoundError(
            f"there is no verdict on {given.answer} yet; `memtrace-otel attribute` judges flagged "
            "answers, `answers` lists them"
        )
    return Found(_verdict_json(stores.graphs, found, texts))


def _ask_verdicts(stores: Stores, given: Verdicts, _: Texts) -> Found[Json]:
    found = [
        verdict
        for verdict in stores.cases.verdicts(given.graph or None)
        if given.stage in ("", verdict["stage"]) and given.type in ("", verdict["error_type"])
    ]
    return Found({}, "verdicts", found, each(_short_json))


def _ask_invariants(stores: Stores, given: Invariants, _: Texts) -> Found[invariants.Finding]:
    return invariants_found(stores.graphs, given.graph)


def _verdict_json(reader: GraphReader, verdict: Mapping[str, Any], texts: Texts) -> Json:
    """Explanations and claims quote captured texts, and are treated as such; what a model was
    shown and what it replied stays out."""
    if texts.are_withheld:
        decisive = next(iter(verdict["decisive"]), None)
        key = span_key(decisive) if decisive else None
        operation = operation_at(reader, key) if key else None
        explanation: Any = without_quotes(verdict, operation)
    else:
        explanation = texts.one(str(verdict["explanation"]))
    return {
        **{name: verdict.get(name) for name in _WITHOUT_CONTENT},
        "explanation": explanation,
        "evidence": [claim | {"says": texts.one(claim["says"])} for claim in verdict["evidence"]],
        "path": [hop | {"says": texts.one(hop["says"])} for hop in verdict.get("path", ())],
        "replay": _part(verdict.get("replay"), ("result", "runs", "flips", "reason", "missing")),
        "model": _part(verdict.get("model"), ("model", "calls", "tokens", "cost", "stopped")),
    }


def _part(whole: Mapping[str, Any] | None, names: Sequence[str]) -> Json | None:
    return {name: whole.get(name) for name in names} if whole else None


def _short_json(verdict: Mapping[str, Any]) -> Json:
    shown = ("answer", "graph_id", "created", "stage", "error_type", "score", "basis", "method")
    return {
        **{key: verdict.get(key) for key in shown},
        "decisive": [span_json(span_key(loss)) for loss in verdict["decisive"]],
    }


def _invariant_json(item: invariants.Finding) -> Json:
    return {
        "kind": item.kind,
        "graph_id": item.graph_id,
        "operation": str(item.operation),
        "span": span_json(item.operation),
        "ref": item.ref,
        "says": item.says,
    }


def _over_graphs(question: Question[GraphReader]) -> Question[Stores]:
    def ask(stores: Stores, given: Any, texts: Texts) -> Found[Any]:
        return question.ask(stores.graphs, given, texts)

    return Question(question.name, question.title, question.arguments, ask)


QUESTIONS: tuple[Question[Stores], ...] = (
    *map(_over_graphs, GRAPH_QUESTIONS),
    Question("verdict", "Verdict on an answer", Verdict, _ask_verdict),
    Question("verdicts", "List the verdicts", Verdicts, _ask_verdicts),
    Question("invariants", "Faults found without a flag", Invariants, _ask_invariants),
)
