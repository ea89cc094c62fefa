"""Each baseline names what it says it names, and is scored by the rules for verdicts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from msgspec import structs

from memtrace_collector.bench import baselines
from memtrace_collector.bench.score import Judgement, Named, Row, Truth, mark
from memtrace_collector.graph import flags
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.contract import scenarios
from tests.contract.test_scenarios import SCENARIOS


def case_of(name: str) -> Case:
    story, _ = SCENARIOS[name].told()
    store = InMemoryFactStore.of(scenarios.facts_of(json.loads(json.dumps(story.otlp()))))
    (flag,) = store.flags()
    answer = flags.resolve(store, flag)
    assert answer is not None
    return load_case(store, answer, flag)


DISTORTED = next(name for name in SCENARIOS if SCENARIOS[name].told()[1].types[0] == "distortion")
"""A value that was changed on its way into memory, and delivered so."""


@pytest.fixture(scope="module")
def case() -> Case:
    return case_of(DISTORTED)


def row(truth: Named, guesses: dict[str, Named], name: str = "c") -> Row:
    judgement = Judgement(error_type="insufficient_evidence")
    whole = Truth(decisive=(truth,))
    return Row(
        case=name,
        system="rag",
        dialogue="d",
        source="realmem",
        category="need",
        kinds=("left_out",),
        held_out=False,
        variant="given",
        truth=whole,
        judgement=judgement,
        marks=mark(whole, judgement),
        guesses=guesses,
    )


def test_the_last_operation_is_the_latest_before_the_answer(case: Case) -> None:
    guess = baselines.guesses(case)[baselines.LAST_OPERATION]
    before = [
        item
        for key, item in case.operations.items()
        if key in case.ancestry | case.turn and key != case.answer.key and not item.composite
    ]
    assert guess.span_id == max(before, key=lambda item: item.start_ns).span_id
    assert guess.step == "assemble"


def test_the_deepest_span_in_error_is_named_where_there_is_one(case: Case) -> None:
    trace = [o for o in case.operations.values() if o.trace_id == case.answer.trace_id]
    failed = structs.replace(min(trace, key=lambda item: item.start_ns), error_type="TimeoutError")
    broken = replace(case, operations={**case.operations, failed.key: failed})
    assert baselines.guesses(broken)[baselines.DEEPEST_ERROR].span_id == failed.span_id
    assert baselines.guesses(case)[baselines.DEEPEST_ERROR].span_id != failed.span_id


def test_an_error_in_another_trace_is_not_seen_by_jaegers_heuristic(case: Case) -> None:
    other = next(o for o in case.operations.values() if o.trace_id != case.answer.trace_id)
    failed = structs.replace(other, error_type="TimeoutError")
    broken = replace(case, operations={**case.operations, failed.key: failed})
    assert baselines.guesses(broken)[baselines.DEEPEST_ERROR].span_id != failed.span_id


def test_word_overlap_names_where_the_expected_words_go_missing(case: Case) -> None:
    guess = baselines.guesses(case)[baselines.WORD_OVERLAP]
    decisive = SCENARIOS[DISTORTED].told()[1].decisive
    assert decisive and (guess.trace_id, guess.span_id) == decisive[0].id


def test_the_majority_names_the_usual_type_at_the_usual_step() -> None:
    extract, answer = Named("", "t", "s1", "extract"), Named("", "t", "s2", "answer")
    guesses = {"latest extract": extract, "latest answer": answer}
    rows = [
        row(Named("omission", "t", "s1", "extract"), guesses, "c1"),
        row(Named("omission", "t", "s7", "extract"), guesses, "c2"),
        row(Named("distracted", "t", "s2", "answer"), guesses, "c3"),
    ]
    found = baselines.judgements(rows)[baselines.MAJORITY]
    assert {each.judgement.error_type for each in found} == {"omission"}
    assert [each.marks.operation for each in found] == [True, False, False]
    assert [each.marks.type for each in found] == [True, True, False]


def test_a_guess_gets_the_type_that_is_usual_at_its_step() -> None:
    last = Named("", "t", "s9", "assemble")
    guesses = {"latest assemble": last, baselines.LAST_OPERATION: last}
    rows = [
        row(Named("cut_from_context", "t", "s9", "assemble"), guesses, "c1"),
        row(Named("omission", "t", "s1", "extract"), guesses, "c2"),
        row(Named("omission", "t", "s1", "extract"), guesses, "c3"),
    ]
    found = baselines.judgements(rows)[baselines.LAST_OPERATION]
    assert [each.judgement.error_type for each in found] == ["cut_from_context"] * 3
    assert [each.marks.joint for each in found] == [True, False, False]


def test_controls_do_not_shape_the_majority_and_are_blamed_by_it() -> None:
    guesses = {"latest extract": Named("", "t", "s1", "extract")}
    control = Named("bad_judge")
    rows = [
        row(control, guesses, "c1"),
        row(control, guesses, "c2"),
        row(Named("omission", "t", "s1", "extract"), guesses, "c3"),
    ]
    found = baselines.judgements(rows)[baselines.MAJORITY]
    assert all(each.marks.blames_memory for each in found)


def test_rows_without_guesses_are_left_out() -> None:
    assert baselines.judgements([row(Named("omission", "t", "s1", "extract"), {})]) == {
        name: [] for name in baselines.NAMES
    }
