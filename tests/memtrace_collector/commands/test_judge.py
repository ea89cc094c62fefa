"""`judge`, and what a judgement is exported as: with its case, and as a labelled benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.commands.output import span_text
from tests.memtrace_collector.commands.conftest import Answer, Run
from tests.memtrace_collector.commands.test_erase import everything

NOTE = "Anna Zwiebelkuchen said so on the phone"
BY = "bob.the.judge"


@pytest.fixture
def answer(ask: Answer, imported: Callable[[str], Any]) -> str:
    """An answer with a verdict: update/overwritten."""
    imported("overwritten")
    (verdict,) = ask("attribute")
    return span_text(verdict["answer"])


def _extraction(ask: Answer) -> str:
    (verdict,) = ask("verdicts")
    return span_text(next(hop["span"] for hop in verdict["path"] if hop["kind"] == "extraction"))


@pytest.fixture
def corrected(ask: Answer, answer: str) -> Any:
    """The verdict that a person corrected to extraction/distortion."""
    said = ("--type", "distortion", "--decisive", _extraction(ask), "--note", NOTE, "--by", BY)
    return ask("judge", answer, *said)


def test_a_correction_is_what_verdicts_lists_and_what_attribute_leaves_standing(
    ask: Answer, run: Run, corrected: Any
) -> None:
    assert ask("verdicts") == [corrected]
    assert (corrected["revision"], corrected["error_type"]) == (2, "distortion")
    assert corrected["judgement"]["note"] == NOTE
    assert [each["revision"] for each in ask("attribute")] == [2]
    assert [each["method"] for each in ask("verdicts", "--history")] == ["rules", "human"]
    assert ask("verdicts", "--type", "overwritten") == []
    assert "extraction/distortion (by hand)" in run("verdicts").output


def test_a_judgement_is_told_and_withdrawn_in_words(run: Run, answer: str) -> None:
    result = run("judge", answer, "--confirm", "--by", BY)
    assert result.exit_code == 0 and "confirmed: revision 2 is update/overwritten" in result.output
    result = run("judge", answer, "--withdraw")
    assert "withdrawn: revision 3 is update/overwritten (rules) again" in result.output
    result = run("judge", answer, "--withdraw")
    assert result.exit_code == 2 and "nothing to withdraw" in result.output


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ((), "give one of --confirm, --type and --withdraw"),
        (("--confirm", "--withdraw"), "give one of"),
        (("--confirm", "--decisive", f"{'0' * 32}:{'0' * 16}"), "belong to --type"),
        (("--type", "omission"), "name the decisive one"),
        (("--type", "omission", "--decisive", f"{'0' * 32}:{'0' * 16}"), "no operation of this"),
        (("--type", "nonsense"), "nonsense"),
        (("--confirm", "--revision", "7"), "revision 1: update/overwritten"),
    ],
)
def test_what_cannot_be_said_exits_2_and_says_why(
    run: Run, ask: Answer, answer: str, typed: tuple[str, ...], says: str
) -> None:
    result = run("judge", answer, *typed)
    assert result.exit_code == 2 and says in result.output
    assert [each["revision"] for each in ask("verdicts")] == [1]


def test_an_answer_that_nobody_knows_exits_2(run: Run, answer: str) -> None:
    result = run("judge", f"{'0' * 32}:{'0' * 16}", "--confirm")
    assert result.exit_code == 2 and "no answer is known" in result.output


def test_a_case_is_exported_with_its_label(ask: Answer, tmp_path: Path, corrected: Any) -> None:
    file = tmp_path / "case.json"
    ask("case", span_text(corrected["answer"]), "--out", file)
    (span,) = _spans(file, "memtrace.judgement")
    says = {each["key"]: each["value"] for each in span["attributes"]}
    assert says["memtrace.attribution.type"] == {"stringValue": "distortion"}
    assert says["memtrace.judgement.note"] == {"stringValue": NOTE}
    assert [link["spanId"] for link in span["links"]] == [corrected["answer"]["spanId"]]


def test_without_a_judgement_there_is_no_label(ask: Answer, tmp_path: Path, answer: str) -> None:
    file = tmp_path / "case.json"
    ask("case", answer, "--out", file)
    assert _spans(file, "memtrace.judgement") == []


def test_a_redacted_export_names_nobody_and_quotes_nothing(
    ask: Answer, tmp_path: Path, corrected: Any
) -> None:
    folder = tmp_path / "judged"
    ask("bench", "export", "--out", folder, "--redact")
    (file,) = folder.iterdir()
    text = file.read_text()
    assert NOTE not in text and BY not in text and "Lisbon" not in text
    (span,) = _spans(file, "memtrace.judgement")
    told = {each["key"] for each in span["attributes"]}
    assert "memtrace.judgement.decisive" in told and "memtrace.judgement.by" not in told


def test_judged_cases_are_a_benchmark_that_an_empty_store_is_scored_by(
    ask: Answer, tmp_path: Path, corrected: Any, imported: Callable[[str], Any]
) -> None:
    imported("omission")
    (other,) = [each for each in ask("attribute") if each["id"] != corrected["id"]]
    ask("judge", span_text(other["answer"]), "--confirm")
    exported = ask("bench", "export", "--out", tmp_path / "judged")
    assert sorted(each["label"] for each in exported["cases"]) == [
        "extraction/distortion",
        "extraction/omission",
    ]
    figures = ask("bench", "import", tmp_path / "judged", "--out", tmp_path / "scores")
    judged = figures["judged"]
    assert (judged["cases"], judged["undecided"]) == (2, 0)
    assert judged["operation"]["hits"] == judged["exact_type"]["hits"] == 1
    told = {each["judged"]: each for each in judged["by_case"]}
    assert told["omission"]["operation"] and told["omission"]["found"] == "omission"
    assert not told["distortion"]["operation"] and told["distortion"]["found"] == "overwritten"
    assert judged["confusion"]["type"]["distortion"] == {"overwritten": 1}
    assert figures["problems"] == [] and figures["all"]["total_cases"] == 0


def test_only_what_was_judged_of_a_graph_is_exported(
    ask: Answer, tmp_path: Path, corrected: Any, imported: Callable[[str], Any]
) -> None:
    imported("omission")
    ask("attribute")
    assert len(ask("bench", "export", "--out", tmp_path / "all")["cases"]) == 1
    none = ask("bench", "export", "--out", tmp_path / "none", "--graph", "user:omission")
    assert none["cases"] == []


def test_what_a_person_called_undecided_is_counted_in_no_share(
    ask: Answer, tmp_path: Path, answer: str
) -> None:
    ask("judge", answer, "--type", "insufficient_evidence")
    ask("bench", "export", "--out", tmp_path / "judged")
    judged = ask("bench", "import", tmp_path / "judged", "--out", tmp_path / "scores")["judged"]
    assert (judged["cases"], judged["undecided"]) == (0, 1)


def test_an_exported_case_is_imported_like_any_other(
    run: Run, ask: Answer, tmp_path: Path, corrected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("bench", "export", "--out", tmp_path / "judged")
    monkeypatch.setenv("MEMTRACE_STORE", str(tmp_path / "elsewhere"))
    assert run("import", *(tmp_path / "judged").iterdir()).exit_code == 0
    (verdict,) = ask("attribute")
    assert (verdict["error_type"], verdict["method"]) == ("overwritten", "rules")


def test_what_people_said_is_taken_over_where_a_case_is_imported(
    ask: Answer,
    tmp_path: Path,
    corrected: Any,
    imported: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported("omission")
    (other,) = [each for each in ask("attribute") if each["id"] != corrected["id"]]
    ask("judge", span_text(other["answer"]), "--confirm")
    ask("bench", "export", "--out", tmp_path / "judged")
    files = sorted((tmp_path / "judged").iterdir())
    monkeypatch.setenv("MEMTRACE_STORE", str(tmp_path / "elsewhere"))
    assert ask("import", *files)["judgements"] == {"found": 2, "taken": 0}
    for _ in range(2):  # a second time it changes nothing
        told = ask("import", *files, "--judgements")
        assert (told["judgements"], told["problems"]) == ({"found": 2, "taken": 2}, [])
    found = {each["id"]: each for each in ask("verdicts")}
    assert {each["revision"] for each in found.values()} == {2}
    kept = ("stage", "error_type", "decisive", "last_right", "first_wrong", "explanation")
    again = found[corrected["id"]]
    assert {name: again[name] for name in kept} == {name: corrected[name] for name in kept}
    assert (again["judgement"]["by"], again["judgement"]["note"]) == (BY, NOTE)
    assert found[other["id"]]["judgement"]["action"] == "confirmed"


def test_another_tenant_can_judge_nothing(
    run: Run, ask: Answer, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTRACE_TENANT", "other")
    result = run("judge", answer, "--confirm")
    assert result.exit_code == 2 and "no answer is known" in result.output
    monkeypatch.delenv("MEMTRACE_TENANT")
    assert [each["revision"] for each in ask("verdicts")] == [1]


def test_erasing_a_graph_leaves_nothing_of_what_was_said_about_it(
    ask: Answer, run: Run, store: Path, corrected: Any
) -> None:
    assert NOTE.encode() in everything(store) and BY.encode() in everything(store)
    report = ask("erase", "user:overwritten", "--yes")
    assert report["left"] == {} and report["erased"]["judgements"] == 1
    assert NOTE.encode() not in everything(store) and BY.encode() not in everything(store)
    assert ask("verdicts", "--history") == []


def test_erasing_a_graph_takes_the_label_that_was_imported_with_a_case(
    ask: Answer, tmp_path: Path, corrected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("bench", "export", "--out", tmp_path / "judged")
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("MEMTRACE_STORE", str(elsewhere))
    ask("import", *(tmp_path / "judged").iterdir())
    assert NOTE.encode() in everything(elsewhere)
    assert ask("erase", "user:overwritten", "--yes")["left"] == {}
    assert NOTE.encode() not in everything(elsewhere)


def test_a_rebuild_judges_anew_and_leaves_what_a_person_said(
    ask: Answer, run: Run, corrected: Any
) -> None:
    assert run("rebuild").exit_code == 0
    assert ask("attribute") == [corrected]
    verdict = ask("judge", span_text(corrected["answer"]), "--withdraw")
    assert (verdict["error_type"], verdict["method"]) == ("overwritten", "rules")


def _spans(file: Path, name: str) -> list[Any]:
    return [
        span
        for resource in json.loads(file.read_text())["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
        if span["name"] == name
    ]
