"""Whether a verdict is as planted, found without it; the form of what is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memtrace_collector.demo.cases import Planted, Question
from memtrace_collector.demo.outcome import Outcome, table
from memtrace_collector.demo.truth import Records, recorded
from memtrace_collector.errors import DamagedError

PLANTED = Planted(stage="update", error_type="overwritten", step="decide", message="s1/1")
QUESTION = Question(id="q", question="Where?", expected="Rome", evidence=("s1/1",), planted=PLANTED)


def _operation(trace: str, step: str, used: list[str], **changes: object) -> dict[str, object]:
    return {
        "traceId": trace * 32, "spanId": step[0] * 16, "graph_id": "user:u", "name": step,
        "step": step, "service": "demo-writer", "start_ns": 1, "composite": False,
        "response_id": "", "used": used, **changes,
    }  # fmt: skip


RECORDS: Records = recorded(
    [
        {
            "operations": [
                _operation("a", "extract", ["msg:s1/1@abc"]),
                _operation("a", "decide", ["fact:x@y"]),
                _operation("b", "extract", ["msg:s1/12@abc"]),
                _operation("b", "decide", ["fact:z@y"]),
                _operation("c", "retrieve", ["query:1@1"], start_ns=2),
                _operation("d", "retrieve", ["query:1@1"], start_ns=3, graph_id="agent:h"),
                _operation("e", "retrieve", ["query:2@2"], start_ns=4),
                _operation("f", "answer", [], response_id="r1", start_ns=9),
            ],
            "values": {"query:1@1": "Where?", "query:2@2": "When?"},
        }
    ]
)
ANSWER = RECORDS.answer("r1")


@pytest.mark.parametrize(
    ("step", "message", "trace"),
    [("extract", "s1/1", "a"), ("decide", "s1/1", "a"), ("retrieve", "", "c"), ("answer", "", "f")],
)
def test_the_planted_operation_is_found_by_what_it_read(step, message, trace):
    planted = replace(PLANTED, step=step, message=message)
    assert RECORDS.planted(planted, "Where?", ANSWER).trace_id == trace * 32


def test_an_operation_that_was_not_recorded_is_an_error():
    with pytest.raises(DamagedError, match="r2"):
        RECORDS.answer("r2")
    with pytest.raises(DamagedError, match="s9/9"):
        RECORDS.planted(replace(PLANTED, message="s9/9"), "Where?", ANSWER)


def _outcome(question: Question, stage: str, trace: str | None) -> Outcome:
    decisive = [{"traceId": trace * 32, "spanId": "d" * 16}] if trace else []
    verdict = {"stage": stage, "error_type": "x", "decisive": decisive, "explanation": "because"}
    planted = question.planted and RECORDS.planted(question.planted, question.question, ANSWER)
    return Outcome(
        question=question, answered="Paris", answer=ANSWER, planted=planted, verdict=verdict
    )


@pytest.mark.parametrize(
    ("stage", "trace", "right"),
    [("update", "a", True), ("update", "b", False), ("deletion", "a", False),
     ("unknown", None, False)],
)  # fmt: skip
def test_a_planted_fault_is_met_by_its_stage_and_operation_only(stage, trace, right):
    assert _outcome(QUESTION, stage, trace).is_as_planted() is right


@pytest.mark.parametrize(
    ("stage", "right"), [("not_memory", True), ("unknown", True), ("response", False)]
)
def test_a_right_answer_may_only_be_cleared(stage, right):
    assert _outcome(replace(QUESTION, planted=None), stage, None).is_as_planted() is right


def test_the_table_marks_what_is_not_as_planted_and_shows_no_control_characters():
    wrong = replace(_outcome(QUESTION, "deletion", "a"), answered="Par\x1b[31mis")
    text = table([wrong, _outcome(QUESTION, "update", "a")], judged=True)
    assert [line[0] for line in text.splitlines() if "Where?" in line] == ["!", " "]
    assert "\x1b" not in text


def test_the_json_names_operation_stage_and_type_of_what_was_planted():
    written = _outcome(QUESTION, "update", "a").to_json()
    assert written["planted"] == {
        "operation": {"traceId": "a" * 32, "spanId": "d" * 16},
        "stage": "update",
        "error_type": "overwritten",
    }
    assert _outcome(replace(QUESTION, planted=None), "unknown", None).to_json()["planted"] is None
