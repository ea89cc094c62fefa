"""The program around a pipeline: clean and planted run, truth, outcomes, going on after a cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import memtrace_otel
from memtrace_collector.bench.pipelines import runner
from memtrace_collector.bench.pipelines.base import Bench, Ran, question_prompt, told
from memtrace_collector.bench.pipelines.runner import read_outcomes
from memtrace_collector.bench.planned import Outcome, PlannedCase, Planting
from memtrace_collector.bench.plantings import Plantings
from memtrace_collector.bench.stand_in.model import StandIn
from tests.instrumentors.otlp_receiver import OTLPReceiver
from tests.memtrace_collector.bench import bench_kit as kit

NAME = "long-context"
WRONG = Planting(kind="wrong_reference", message=kit.PRICE, detail={"expected": "310 euros"})


class Notes:
    """A pipeline that keeps facts in a list."""

    name = NAME

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.runs = 0

    def run(self, case: PlannedCase, plantings: Plantings, model: StandIn) -> Ran:
        self.runs += 1
        with memtrace_otel.graph(case.owner), memtrace_otel.operation("extract"):
            facts = model.extract(told(case, plantings))
        with self._bench.turn("answer"):
            prompt = question_prompt(facts, case.question.text)
            return self._bench.ask(prompt, plantings, model, case.owner)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[OTLPReceiver]:
    with OTLPReceiver() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint)
        yield server


def run(folder: Path, *cases: PlannedCase) -> list[Outcome]:
    plan, outcomes = folder / "plan.json", folder / "outcomes.jsonl"
    plan.write_bytes(msgspec.json.encode(list(cases)))
    assert runner.main(Notes, ["--plan", str(plan), "--outcomes", str(outcomes)]) == 0
    return read_outcomes(outcomes)


def case(name: str, *plantings: Planting) -> PlannedCase:
    return kit.case(NAME, *plantings, name=name)


@pytest.mark.usefixtures("receiver")
def test_a_control_is_right_and_counts_as_a_right_answer_that_is_flagged(tmp_path: Path) -> None:
    (outcome,) = run(tmp_path, case("control"))
    assert outcome.right and outcome.clean_right and outcome.counts
    assert [truth.error_type for truth in outcome.truths] == ["bad_judge"]
    assert outcome.expected == "240 euros"


@pytest.mark.usefixtures("receiver")
def test_a_wrong_reference_makes_a_right_reply_wrong_and_blames_no_operation(
    tmp_path: Path,
) -> None:
    (outcome,) = run(tmp_path, case("reference", WRONG))
    assert "240" in outcome.reply
    assert (outcome.expected, outcome.right, outcome.counts) == ("310 euros", False, True)
    assert outcome.truths[0].span_id == ""


def test_the_truth_is_the_span_in_which_the_fault_was_made(
    receiver: OTLPReceiver, tmp_path: Path
) -> None:
    lost = Planting(kind="left_out", message=kit.PRICE)
    declined = Planting(kind="declined")
    first, second = run(tmp_path, case("lost", lost), case("declined", declined))
    steps = {s["span_id"]: s["attributes"].get("memtrace.step") for s in receiver.spans()}
    assert steps[first.truths[0].span_id] == "extract"
    assert second.truths[0].span_id == second.span_id
    assert steps[second.span_id] == "answer"


@pytest.mark.usefixtures("receiver")
def test_a_fault_that_does_not_come_to_pass_is_no_case(tmp_path: Path) -> None:
    (outcome,) = run(tmp_path, case("nothing", Planting(kind="reranked_away", message=kit.PRICE)))
    assert "reranked_away" in outcome.skipped
    assert not outcome.counts


@pytest.mark.usefixtures("receiver")
def test_a_run_goes_on_after_the_last_whole_line(tmp_path: Path) -> None:
    first = case("first")
    run(tmp_path, first)
    with (tmp_path / "outcomes.jsonl").open("ab") as file:
        file.write(b'{"case": {"id": "sec')
    outcomes = run(tmp_path, first, case("second"))
    assert [outcome.case.id for outcome in outcomes] == ["first", "second"]


@pytest.mark.usefixtures("receiver")
def test_the_same_question_over_the_same_dialogue_runs_clean_once(tmp_path: Path) -> None:
    pipelines: list[Notes] = []

    def make(bench: Bench) -> Notes:
        pipelines.append(Notes(bench))
        return pipelines[-1]

    cases = [case("one"), case("two", WRONG), case("three", Planting(kind="declined"))]
    exporter = runner.exporter_from_environment()
    assert len(list(runner.run_cases(make, cases, exporter, tmp_path))) == 3
    assert pipelines[0].runs == 4


def test_without_an_endpoint_it_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    plan = tmp_path / "plan.json"
    plan.write_text("[]")
    arguments = ["--plan", str(plan), "--outcomes", str(tmp_path / "out.jsonl")]
    assert runner.main(Notes, arguments) == 2
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in capsys.readouterr().err


def test_what_is_no_plan_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('[{"id": 7}]')
    arguments = ["--plan", str(plan), "--outcomes", str(tmp_path / "out.jsonl")]
    assert runner.main(Notes, arguments) == 4
    assert "plan.json" in capsys.readouterr().err
