"""The LangGraph, RAG, long-context and staged programs: right without faults, wrong with each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id

from memtrace_collector.bench.dialogue import Message, Question
from memtrace_collector.bench.faults import KINDS, LANGGRAPH, LONG_CONTEXT, RAG, STAGED
from memtrace_collector.bench.pipelines.langgraph import langgraph
from memtrace_collector.bench.pipelines.long_context import long_context
from memtrace_collector.bench.pipelines.rag import rag
from memtrace_collector.bench.pipelines.runner import MakePipeline, run_cases
from memtrace_collector.bench.pipelines.staged import staged
from memtrace_collector.bench.planned import Outcome, PlannedCase
from memtrace_collector.bench.planning.drafts import Draft, Material, draft
from memtrace_collector.bench.planning.plan import with_own_ids
from memtrace_otel import semconv
from tests.memtrace_collector.bench import bench_kit as kit

PIPELINES: dict[str, MakePipeline] = {
    LANGGRAPH: langgraph,
    RAG: rag,
    LONG_CONTEXT: long_context,
    STAGED: staged,
}
POOL = ("a violin", "Copenhagen", "310 francs", "the third of June", "Wednesday evenings")
TEMPORAL = ("date_stripped", "re_stamped")
UNANSWERABLE = ("answered_unknown", "made_up")
STEPS = {
    "never_said": "",
    "chunk_lost": "ingest",
    "filed_elsewhere": "ingest",
    "left_out": "extract",
    "did_not_save": "answer",
    "value_changed": "extract",
    "negated": "extract",
    "owner_swapped": "extract",
    "saved_wrongly": "answer",
    "made_up": "extract",
    "chose_nothing": "decide",
    "write_failed": "create",
    "taken_for_known": "decide",
    "left_beside": "decide",
    "written_over": "decide",
    "merge_dropped": "decide",
    "re_stamped": "decide",
    "race": "update",
    "summary_dropped": "consolidate",
    "trimmed": "consolidate",
    "deleted": "decide",
    "expired": "create",
    "forget_ignored": "decide",
    "not_searched": "answer",
    "wrong_namespace": "retrieve",
    "query_lost": "rewrite",
    "missed": "retrieve",
    "below_the_limit": "retrieve",
    "reranked_away": "rerank",
    "below_threshold": "retrieve",
    "stale_index": "retrieve",
    "over_budget": "assemble",
    "date_stripped": "assemble",
    "declined": "answer",
    "took_another": "answer",
    "misread": "answer",
    "ignored": "answer",
    "answered_unknown": "answer",
    "wrong_reference": "",
    "right_but_flagged": "",
    "call_failed": "answer",
}
ELSEWHERE = {
    (LANGGRAPH, "written_over"): {"update"},
    (LANGGRAPH, "deleted"): {"delete", "decide"},
    (LANGGRAPH, "query_lost"): {"answer"},
    (LANGGRAPH, "over_budget"): {"assemble", "answer"},
    (STAGED, "below_threshold"): {"retrieve", "rerank"},
}
"""Where a system's own way of working makes another operation decisive."""


class Ran(NamedTuple):
    outcomes: dict[str, Outcome]
    spans: dict[str, ReadableSpan]


def messages() -> tuple[Message, ...]:
    """The kit's dialogue, and something near the question that does not answer it."""
    near = Message(
        id="m11",
        speaker="Ben",
        role="assistant",
        text="Did Ana pay Otto 90 francs for a bicycle lock? Otto wanted Ana to pay 90 francs.",
        said_at=kit.MORNING + timedelta(minutes=11),
    )
    return (*kit.messages(), near)


def question_for(kind: str) -> Question:
    if kind in TEMPORAL:
        return kit.question(
            text="When did Ana get her bicycle?", expected="7 May 2023", category="temporal"
        )
    if kind in UNANSWERABLE:
        return kit.question(
            text="What did Ana name the bicycle?", expected="", evidence=(), near=(kit.PRICE,)
        )
    if kind == "negated":
        return kit.question(
            text="Whom does Ana need for her choir?", expected="a tenor", evidence=("m9",)
        )
    return kit.question()


def planned(system: str) -> Iterator[PlannedCase]:
    """One case of each kind that names the system, as the planner makes it, and a control."""
    for kind in KINDS.values():
        if system not in kind.systems:
            continue
        said = Draft(messages(), question_for(kind.name))
        made = draft(kind.name, Material(said, POOL, random.Random(3)))
        assert made is not None, kind.name
        case = kit.case(system, *made.plantings, name=kind.name)
        yield with_own_ids(replace(case, messages=made.messages, question=made.question))
    yield with_own_ids(kit.case(system, name="control", messages=messages()))


@pytest.fixture(scope="module", params=PIPELINES)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    exporter = InMemorySpanExporter()
    folder: Path = tmp_path_factory.mktemp(request.param)
    cases = list(planned(request.param))
    outcomes = run_cases(PIPELINES[request.param], cases, exporter, folder)
    by_kind = {outcome.case.id: outcome for outcome in outcomes}
    spans = {
        format_span_id(context.span_id): span
        for span in exporter.get_finished_spans()
        if (context := span.get_span_context()) is not None
    }
    return Ran(by_kind, spans)


def step_of(ran: Ran, span_id: str) -> str:
    if not span_id:
        return ""
    return str((ran.spans[span_id].attributes or {})[semconv.MEMTRACE_STEP])


def test_without_plantings_each_question_is_answered_rightly(ran: Ran) -> None:
    wrong = {kind: o.clean_reply for kind, o in ran.outcomes.items() if not o.clean_right}
    assert not wrong


def test_each_fault_changes_the_answer(ran: Ran) -> None:
    assert [kind for kind, outcome in ran.outcomes.items() if not outcome.counts] == []


def test_each_fault_is_recorded_once_at_an_exported_operation_of_its_step(ran: Ran) -> None:
    found, expected = {}, {}
    for kind, outcome in ran.outcomes.items():
        if kind == "control":
            continue
        (truth,) = outcome.truths
        assert truth.error_type == KINDS[kind].error_type
        found[kind] = step_of(ran, truth.span_id)
        allowed = ELSEWHERE.get((outcome.case.system, kind), {STEPS[kind]})
        expected[kind] = found[kind] if found[kind] in allowed else f"one of {allowed}"
    assert found == expected


def test_no_truth_is_a_composite_operation(ran: Ran) -> None:
    for outcome in ran.outcomes.values():
        for truth in outcome.truths:
            if truth.span_id:
                attributes = ran.spans[truth.span_id].attributes or {}
                assert '"composite":true' not in str(attributes[semconv.MEMTRACE_LINEAGE])


def test_the_answer_stands_in_the_graph_of_the_owner(ran: Ran) -> None:
    for outcome in ran.outcomes.values():
        attributes = ran.spans[outcome.span_id].attributes or {}
        assert attributes[semconv.MEMTRACE_GRAPH_ID] == outcome.graph_id
        assert attributes[semconv.MEMTRACE_STEP] == semconv.STEP_ANSWER
