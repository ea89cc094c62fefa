"""Scoring on verdicts made by hand: every measure with a case that it must refuse."""

from __future__ import annotations

import pytest

from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.bench.score import (
    LABEL_OF,
    Judgement,
    Marks,
    Named,
    Reading,
    Truth,
    mark,
)

EXTRACT = Named("omission", "t1", "s1", "extract")
DECIDE = Named("overwritten", "t1", "s2", "decide")
RETRIEVE = Named("not_retrieved", "t2", "s3", "retrieve")
ANSWER = Named("ignored_context", "t2", "s4", "answer")


def said(*decisive: Named, score: float = 0.9, **more: object) -> Judgement:
    return Judgement(
        error_type=decisive[0].error_type,
        decisive=decisive,
        score=score,
        **more,  # type: ignore[arg-type]  # of a test's own
    )


def nothing_named(error_type: str, score: float = 0.9) -> Judgement:
    return Judgement(error_type=error_type, score=score)


def marks(truth: Named, judgement: Judgement) -> Marks:
    return mark(Truth(decisive=(truth,)), judgement)


def test_the_planted_verdict_is_right_by_every_measure() -> None:
    found = marks(EXTRACT, said(EXTRACT))
    assert found.operation and found.stage and found.type and found.exact_type
    assert found.label and found.joint and found.top_three
    assert not found.abstained and not found.confident_wrong


def test_the_right_type_at_another_operation_is_wrong_in_operation_and_joint_only() -> None:
    found = marks(EXTRACT, said(Named("omission", "t1", "s9", "extract")))
    assert found.stage and found.type and found.label
    assert not found.operation and not found.joint and found.confident_wrong


def test_the_right_operation_with_another_type_of_the_stage_is_wrong_in_type_only() -> None:
    found = marks(EXTRACT, said(Named("distortion", "t1", "s1", "extract")))
    assert found.operation and found.stage and found.label
    assert not found.type and not found.joint and not found.confident_wrong


def test_the_same_span_id_in_another_trace_is_another_operation() -> None:
    assert not marks(EXTRACT, said(Named("omission", "t9", "s1", "extract"))).operation


def test_a_label_joins_stages_that_hand_labels_join() -> None:
    found = marks(RETRIEVE, said(Named("cut_from_context", "t2", "s5", "assemble")))
    assert found.label and not found.stage and not found.type


def test_types_inside_response_count_as_one_but_not_as_exact() -> None:
    found = marks(ANSWER, said(Named("distracted", "t2", "s4", "answer")))
    assert found.type and found.joint and not found.exact_type


def test_another_type_beside_response_is_not_folded() -> None:
    assert not marks(ANSWER, said(RETRIEVE)).type


def test_an_abstention_is_never_right_and_never_confident_wrong() -> None:
    for truth in (EXTRACT, Named("never_told"), Named("bad_reference")):
        found = marks(truth, nothing_named("insufficient_evidence", score=0.9))
        assert found.abstained and not found.confident_wrong
        assert not (found.operation or found.stage or found.type or found.label or found.top_three)


def test_where_no_operation_is_to_be_named_naming_none_is_right() -> None:
    assert marks(Named("never_told"), nothing_named("never_told")).operation
    assert marks(Named("bad_reference"), nothing_named("bad_reference")).operation


def test_where_no_operation_is_to_be_named_naming_one_is_wrong() -> None:
    found = marks(Named("never_told"), said(Named("never_told", "t1", "s1", "ingest")))
    assert found.stage and not found.operation


def test_naming_no_operation_for_another_reason_is_wrong() -> None:
    assert not marks(Named("never_told"), nothing_named("bad_reference")).operation
    assert not marks(EXTRACT, nothing_named("never_told")).operation


def test_a_wrong_judge_may_be_named_but_no_other_operation() -> None:
    control = Named("bad_judge")
    assert marks(control, nothing_named("bad_judge")).operation
    assert marks(control, said(Named("bad_judge", "t3", "s6", "judge"))).operation
    assert not marks(control, said(Named("bad_judge", "t2", "s4", "answer"))).operation


def test_blaming_a_memory_operation_for_a_right_answer_is_seen() -> None:
    assert marks(Named("bad_judge"), said(ANSWER)).blames_memory
    for harmless in ("bad_judge", "bad_reference", "unrelated", "insufficient_evidence"):
        assert not marks(Named("bad_judge"), nothing_named(harmless)).blames_memory


def test_only_all_of_several_causes_are_right() -> None:
    truth = Truth(decisive=(EXTRACT, DECIDE))
    assert mark(truth, said(EXTRACT, DECIDE)).operation
    assert mark(truth, said(EXTRACT, DECIDE)).joint
    one = mark(truth, said(EXTRACT))
    assert not one.operation and not one.stage and not one.type
    assert not mark(Truth(decisive=(EXTRACT,)), said(EXTRACT, DECIDE)).operation


def test_a_further_operation_beside_the_truth_is_not_needed() -> None:
    truth = Truth(decisive=(EXTRACT,), also=(DECIDE,))
    assert mark(truth, said(EXTRACT)).operation
    assert not mark(truth, said(DECIDE)).operation


def test_the_top_three_hold_alternatives_and_also() -> None:
    by_alternative = said(RETRIEVE, alternatives=(Reading("omission", (EXTRACT,)),))
    by_also = said(RETRIEVE, also=(EXTRACT,))
    for judgement in (by_alternative, by_also):
        found = marks(EXTRACT, judgement)
        assert found.top_three and not found.operation


def test_the_fourth_reading_does_not_count() -> None:
    judgement = said(
        RETRIEVE,
        alternatives=(Reading("distracted", (ANSWER,)), Reading("overwritten", (DECIDE,))),
        also=(EXTRACT,),
    )
    assert not marks(EXTRACT, judgement).top_three


def test_a_wrong_verdict_is_confident_from_the_cut_on_and_only_about_memory() -> None:
    assert marks(EXTRACT, said(RETRIEVE, score=0.5)).confident_wrong
    assert not marks(EXTRACT, said(RETRIEVE, score=0.49)).confident_wrong
    assert not marks(EXTRACT, nothing_named("bad_reference")).confident_wrong
    truth = Truth(decisive=(EXTRACT,))
    assert not mark(truth, said(RETRIEVE, score=0.6), confident=0.7).confident_wrong


def test_unrelated_has_no_label_and_cannot_be_right_by_it() -> None:
    found = marks(Named("unrelated"), nothing_named("unrelated"))
    assert found.stage and found.type and not found.label


def test_every_type_has_its_label_or_none() -> None:
    assert set(STAGE_OF) - set(LABEL_OF) == {"unrelated", "insufficient_evidence"}
    assert set(LABEL_OF) <= set(STAGE_OF)


@pytest.mark.parametrize(
    ("error_type", "label"),
    [
        ("never_told", "AnnotationError"),
        ("wrong_graph", "ExtractionError"),
        ("not_deleted", "UpdateError"),
        ("wrongly_deleted", "DeletionError"),
        ("cut_from_context", "RetrievalError"),
        ("hallucinated", "ResponseError"),
    ],
)
def test_labels_are_those_of_the_decision_table(error_type: str, label: str) -> None:
    assert LABEL_OF[error_type] == label


def test_blaming_one_more_operation_names_the_truth_without_being_exact() -> None:
    found = marks(EXTRACT, said(EXTRACT, DECIDE))
    assert found.named and not found.operation
    assert not marks(EXTRACT, said(DECIDE)).named
    assert not mark(Truth(decisive=(EXTRACT, DECIDE)), said(EXTRACT)).named
    assert marks(EXTRACT, said(EXTRACT)).named
