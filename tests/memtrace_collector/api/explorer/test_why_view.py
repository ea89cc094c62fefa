"""The receipt of an answer, as its page is told it."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_collector.api.explorer import why as view
from memtrace_collector.api.explorer.why import why
from memtrace_collector.api.exploring import Stores
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.memtrace_collector.attribution.scripts import Script, three_candidates


def shown(script: Script, cases: SqliteCaseStore, **parameters: str) -> Any:
    return why(Stores(script.store(), cases), parameters)


def test_a_receipt_shows_each_candidate_with_its_fate(cases: SqliteCaseStore) -> None:
    script, refs = three_candidates()
    found = shown(script, cases, answer=str(script.last("answer")))
    assert found["answer"]["question"]["text"] == "Who cuts her hair?"
    assert found["answer"]["outcome"] == "unflagged"
    (read,) = found["reads"]
    told = [
        (each["ref"], each["rank"], each["score"], each["outcome"], each["reason"], each["used"])
        for each in read["candidates"]
    ]
    assert told == [
        (refs[0], 1, 0.9, "injected", "", True),
        (refs[1], 2, 0.5, "returned", "", False),
        (refs[2], 3, 0.4, "cut", "limit", False),
    ]
    assert read["bar"] == {"ref": refs[1], "rank": 2, "score": 0.5}
    assert (read["asked"]["text"], read["limits"]) == ("Who cuts her hair?", {"k": 2})
    assert found["about"] is None


def test_of_a_search_with_very_many_candidates_the_rest_is_counted(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MAX_CANDIDATES", 2)
    script, _ = three_candidates()
    (read,) = shown(script, cases, answer=str(script.last("answer")))["reads"]
    assert (len(read["candidates"]), read["left_out"]) == (2, 1)


def test_a_question_about_a_text_is_answered_with_what_beat_it(cases: SqliteCaseStore) -> None:
    script, _ = three_candidates()
    found = shown(script, cases, answer=str(script.last("answer")), about="barber is in Rome")
    (told,) = found["about"]["found"]
    assert (told["outcome"], told["record"]) == ("cut", "mem:stub:3")
    assert told["text"]["text"] == "Her barber is in Rome."
    assert [each["text"]["text"] for each in told["beaten_by"]] == [
        "Enzo cuts her hair.", "She likes tea.",
    ]  # fmt: skip
    assert all(set(line) == {"text", "span"} for line in told["says"])


def test_answers_to_choose_from_begin_with_those_flagged(cases: SqliteCaseStore) -> None:
    script, _ = three_candidates()
    first = script.last("answer")
    script.flag("Ugo")
    script.ask("And then?", 30)
    script.answer("Nothing.")
    found = shown(script, cases)
    spans = [each["span"]["spanId"] for each in found["answers"]["items"]]
    assert spans == [first.span_id, script.last("answer").span_id]
    outcomes = [each["outcome"] for each in found["answers"]["items"]]
    assert outcomes == ["flagged", "unflagged"]
    assert (found["flagged"], found["looked_at"], found["known"]) == (1, 1, 1)
    assert shown(Script(), cases)["answers"]["total"] == 0


def test_only_the_latest_graphs_are_gone_through_and_it_says_how_many(
    cases: SqliteCaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MAX_READ", 3)
    monkeypatch.setattr(view, "MAX_FLAGS", 1)
    script = Script()
    for number in range(3):
        script.graph = f"user:{number}"
        script.ask("What?", number)
        script.answer("That.")
    found = shown(script, cases)
    assert (found["looked_at"], found["known"]) == (1, 3)
    assert [each["graph_id"] for each in found["answers"]["items"]] == ["user:2"]
    named = shown(script, cases, graph="user:0")
    assert [each["graph_id"] for each in named["answers"]["items"]] == ["user:0"]
    monkeypatch.setattr(view, "LARGEST", 1)
    too_large = shown(script, cases, graph="user:0")
    assert (too_large["answers"]["total"], too_large["looked_at"]) == (0, 0)


def test_what_is_no_answer_is_refused(cases: SqliteCaseStore) -> None:
    script, _ = three_candidates()
    with pytest.raises(WrongUseError):
        shown(script, cases, answer="nonsense")
    with pytest.raises(NotFoundError):
        shown(script, cases, answer="f" * 32)
    with pytest.raises(NotFoundError):
        shown(script, cases, graph="user:nobody")
