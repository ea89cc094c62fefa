"""The report's figures on rows made by hand, and what the text says of them."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_collector.bench import report, report_text
from memtrace_collector.bench.folder import RunInfo
from memtrace_collector.bench.score import Judgement, Named, Row, Truth, mark

TRUTH = Named("omission", "t", "s1", "extract")
ELSEWHERE = Named("omission", "t", "s2", "extract")
RUN = {
    "selection": "split all",
    "planned": 3,
    "ran": 2,
    "counted": 1,
    "controls": 0,
    "not_counted": {"skipped: no reranker": 1},
    "not_counted_by_kind": {"left_out": {"skipped: no reranker": 1}},
    "problems": ["c9: not recorded"],
}


def row(
    number: int,
    verdict: Named | None = TRUTH,
    *,
    truth: Named = TRUTH,
    variant: str = "given",
    score: float = 0.9,
    **more: Any,
) -> Row:
    """``verdict`` None: an abstention."""
    judgement = Judgement(
        error_type=verdict.error_type if verdict else "insufficient_evidence",
        decisive=(verdict,) if verdict and verdict.span_id else (),
        score=score if verdict else 0.0,
        basis=more.pop("basis", ("structure",)),
    )
    whole = Truth(decisive=(truth, *more.pop("also_decisive", ())))
    fields: dict[str, Any] = {
        "system": "rag",
        "dialogue": f"d{number % 4}",
        "source": "realmem",
        "category": "need",
        "kinds": ("left_out",),
        "held_out": False,
    }
    return Row(
        case=f"c{number}",
        variant=variant,
        truth=whole,
        judgement=judgement,
        marks=mark(whole, judgement),
        **{**fields, **more},
    )


def control(number: int, verdict: Named, **more: Any) -> Row:
    return row(number, verdict, truth=Named("bad_judge"), kinds=(), **more)


def line(rows: list[Row], what: str) -> dict[str, Any]:
    lines = report.part(rows)["acceptance"]
    found: dict[str, Any] = next(each for each in lines if each["what"] == what)
    return found


@pytest.mark.parametrize(("right", "met"), [(92, True), (91, False)])
def test_exact_operation_is_met_from_92_percent(right: int, met: bool) -> None:
    rows = [row(n, TRUTH if n < right else ELSEWHERE) for n in range(100)]
    assert line(rows, "exact operation")["met"] is met


def test_an_abstention_counts_as_not_right_and_is_also_shown_apart() -> None:
    rows = [row(n, TRUTH if n < 6 else None) for n in range(10)]
    figures = report.measures(rows)
    assert figures["operation"]["share"] == 0.6
    assert figures["operation_told"]["share"] == 1.0
    assert figures["abstained"]["share"] == 0.4


@pytest.mark.parametrize(("blamed", "met"), [(2, True), (3, False)])
def test_false_blame_may_be_two_percent_of_the_controls(blamed: int, met: bool) -> None:
    rows = [control(n, ELSEWHERE if n < blamed else Named("bad_judge")) for n in range(100)] + [
        row(200)
    ]
    assert line(rows, "false blame on right answers")["met"] is met


def test_controls_are_in_no_accuracy() -> None:
    rows = [row(1), *(control(n, Named("bad_judge")) for n in range(2, 9))]
    assert report.measures(rows)["operation"]["total"] == 1


def test_without_an_expected_answer_accuracy_is_of_those_not_abstained() -> None:
    rows = [row(n, TRUTH if n < 4 else None, variant="no_expected") for n in range(10)]
    accuracy = line(rows, "stage of those not abstained, no expected answer")
    abstention = line(rows, "abstention, no expected answer")
    assert accuracy["met"] is True and abstention["met"] is False


def test_confident_wrong_counts_all_cases_controls_included() -> None:
    rows = [row(n, variant="lossy") for n in range(96)]
    rows += [control(n, ELSEWHERE, variant="lossy") for n in range(96, 99)]
    rows += [row(99, ELSEWHERE, variant="lossy", score=0.3)]
    found = line(rows, "confident wrong with 5 % of spans lost")
    assert found["figure"]["hits"] == 3 and found["figure"]["total"] == 100
    assert found["met"] is True
    rows.append(row(100, ELSEWHERE, variant="lossy"))
    assert line(rows, "confident wrong with 5 % of spans lost")["met"] is False


def test_shuffled_is_missed_as_soon_as_one_case_is_worse() -> None:
    given = [row(n) for n in range(5)]
    same = [row(n, variant="shuffled") for n in range(5)]
    assert line([*given, *same], "shuffled and repeated: no worse")["met"] is True
    worse = [*same[:4], row(4, ELSEWHERE, variant="shuffled")]
    assert line([*given, *worse], "shuffled and repeated: no worse")["met"] is False


def test_what_was_not_run_is_neither_met_nor_missed() -> None:
    rows = [row(n) for n in range(3)]
    assert line(rows, "exact operation, evidence found")["met"] is None
    assert line(rows, "shuffled and repeated: no worse")["met"] is None


def test_blaming_memory_for_a_wrong_reference_is_counted_apart() -> None:
    reference = Named("bad_reference")
    rows = [row(1, ELSEWHERE, truth=reference), row(2, reference, truth=reference), row(3)]
    figures = report.measures(rows)
    assert (figures["reference_blame"]["hits"], figures["reference_blame"]["total"]) == (1, 2)
    assert figures["false_blame"]["total"] == 0


def test_groups_confusion_and_bases_count_each_case_once() -> None:
    rows = [
        row(1, system="rag"),
        row(2, ELSEWHERE, system="staged", basis=("structure", "text")),
        row(3, Named("distracted", "t", "s4", "answer"), system="staged"),
    ]
    figures = report.part(rows)
    assert figures["groups"]["system"]["staged"]["operation"]["total"] == 2
    assert figures["groups"]["system"]["rag"]["operation"]["share"] == 1.0
    assert figures["confusion"]["type"] == {"omission": {"omission": 2, "response": 1}}
    assert figures["confusion"]["stage"] == {"extraction": {"extraction": 2, "response": 1}}
    assert figures["bases"]["structure+text"]["operation"]["share"] == 0.0


def test_types_inside_response_have_a_confusion_of_their_own() -> None:
    truth = Named("distracted", "t", "s4", "answer")
    taken = Named("ignored_context", "t", "s4", "answer")
    figures = report.part([row(1, taken, truth=truth), row(2)])
    assert figures["confusion"]["inside_response"] == {"distracted": {"ignored_context": 1}}
    assert figures["confusion"]["type"]["response"] == {"response": 1}
    assert figures["variants"]["given"]["response_exact_type"]["total"] == 1


def test_coverage_falls_and_accuracy_follows_the_score() -> None:
    rows = [row(n, score=0.9) for n in range(5)] + [row(9, ELSEWHERE, score=0.45), row(10, None)]
    points = {point["cut"]: point for point in report.part(rows)["coverage"]}
    assert points[0.0]["coverage"] == pytest.approx(6 / 7)
    assert points[0.0]["operation"]["share"] == pytest.approx(5 / 6, abs=1e-4)
    assert points[0.5]["coverage"] == pytest.approx(5 / 7)
    assert points[0.5]["operation"]["share"] == 1.0


def test_several_causes_are_counted_apart() -> None:
    second = Named("wrongly_deleted", "t", "s8", "delete")
    rows = [row(1, also_decisive=(second,)), row(2)]
    several = report.part(rows)["several_causes"]
    assert several["all_named"]["total"] == 1
    assert several["all_named"]["hits"] == 0 and several["some_named"]["hits"] == 1


def test_dev_and_held_out_figures_are_apart() -> None:
    rows = [row(1), row(2, ELSEWHERE, held_out=True)]
    parts = report.summary(rows)["parts"]
    assert parts["dev"]["variants"]["given"]["operation"]["share"] == 1.0
    assert parts["held_out"]["variants"]["given"]["operation"]["share"] == 0.0
    assert parts["all"]["cases"] == 2
    assert set(report.summary([row(1)])["parts"]) == {"all", "dev"}


def test_the_text_says_what_was_met_what_was_left_out_and_what_is_not_there() -> None:
    rows = [row(1), row(2, ELSEWHERE, held_out=True)]
    info = RunInfo(
        seed=7,
        per_kind=1,
        split="all",
        systems=("rag",),
        kinds=(),
        skipped_systems={"mem0-2": "no interpreter"},
    )
    text = report_text.markdown(info, RUN, report.summary(rows))
    assert "| exact operation | >= 92% | 100.0% (21%–100%) | met |" in text
    assert "**missed**" in text and "not run" in text
    assert "mem0-2 was left out: no interpreter" in text
    assert "skipped: no reranker: 1" in text and "c9: not recorded" in text
    for title in ("## Looked at while developing", "## Kept aside", "## All cases"):
        assert title in text


def test_every_table_of_the_text_has_rows_of_equal_width() -> None:
    rows = [row(n, TRUTH if n % 3 else None, held_out=n % 2 == 0) for n in range(12)]
    info = RunInfo(seed=1, per_kind=1, split="all", systems=(), kinds=())
    text = report_text.markdown(info, RUN, report.summary(rows))
    for block in text.split("\n\n"):
        table = [each for each in block.splitlines() if each.startswith("|")]
        assert len({each.count("|") for each in table}) <= 1, table
