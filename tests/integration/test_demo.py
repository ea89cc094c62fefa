"""The demo does what it says: every planted fault is named, no right answer is blamed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from memtrace_collector.demo.cases import questions
from tests.demo_run import COMMAND, DemoRun, run_demo
from tests.integration.servers import running, up

PLANTED = [question.id for question in questions() if question.planted]
RIGHT = [question.id for question in questions() if not question.planted]


def _case(demo: DemoRun, case_id: str) -> dict:
    return next(case for case in demo.cases if case["id"] == case_id)


@pytest.mark.parametrize("case_id", PLANTED)
def test_a_planted_fault_gets_its_stage_type_and_operation(demo, case_id):
    case = _case(demo, case_id)
    named = case["verdict"]["decisive"][0]
    assert case["verdict"]["stage"] == case["planted"]["stage"]
    assert case["verdict"]["error_type"] == case["planted"]["error_type"]
    assert {"traceId": named["traceId"], "spanId": named["spanId"]} == case["planted"]["operation"]


@pytest.mark.parametrize("case_id", RIGHT)
def test_no_memory_fault_is_claimed_for_a_right_answer(demo, case_id):
    case = _case(demo, case_id)
    assert case["planted"] is None
    assert case["verdict"]["stage"] in ("not_memory", "unknown")


def test_the_command_reports_success_and_shows_every_case(demo):
    assert demo.exit_code == 0
    assert f"{len(PLANTED)} of {len(PLANTED)} planted faults" in demo.printed
    for title in ("QUESTION", "EXPECTED", "ANSWERED", "VERDICT", "DECISIVE OPERATION", "WHY"):
        assert title in demo.printed
    assert "Where to look next" in demo.printed


def test_it_takes_under_three_minutes(demo):
    assert demo.seconds < 180


def test_its_output_has_the_documented_form(demo):
    for case in demo.cases:
        assert list(case) == [
            "id", "question", "expected", "answered", "answer", "planted", "verdict"
        ]  # fmt: skip
        assert list(case["answer"]) == ["traceId", "spanId"]
        assert case["verdict"]["answer"] == case["answer"]


def test_a_planted_answer_does_not_give_what_was_expected(demo):
    for case_id in PLANTED:
        case = _case(demo, case_id)
        assert case["expected"].lower() not in case["answered"].lower()


@pytest.fixture(scope="module")
def server(demo):
    """Over what the demo left."""
    with up(demo.store) as found:
        yield found


def test_one_answer_comes_from_two_graphs(demo, server):
    answer = _case(demo, "insurance-desk")["answer"]
    ancestry = server.get("/ancestry", answer=f"{answer['traceId']}:{answer['spanId']}")
    assert len({operation["graph_id"] for operation in ancestry["operations"]}) == 2


def test_its_store_answers_the_commands_it_recommends(demo, server):
    assert len(server.get("/verdicts")) == len(demo.cases)
    graphs = [summary["graph_id"] for summary in server.get("/graphs")]
    assert any(graph_id.startswith("user:") for graph_id in graphs)
    assert json.dumps(graphs).count("lin_wanyu") == 0, "a user id left the process undigested"


def test_a_real_model_is_asked_by_name_and_nothing_is_planted(tmp_path, monkeypatch):
    """The 'real' model of this test is a second stand-in that makes no mistakes."""
    with running(
        [sys.executable, "-m", "memtrace_collector.demo.model"], tmp_path / "log"
    ) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.stdout.readline().strip())
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        found = run_demo(tmp_path, "--model", "some-model")
    assert found.exit_code == 0
    assert all(case["planted"] is None for case in found.cases)
    assert {case["verdict"]["error_type"] for case in found.cases} == {"bad_judge"}
    assert "16 answers by some-model; nothing was planted." in found.printed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--model", "some-model"], "OPENAI_API_KEY"), (["--store", "{full}"], "is not empty")],
)
def test_wrong_use_is_told_and_exits_2(tmp_path, monkeypatch, arguments, says):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "file").touch()
    arguments = [argument.replace("{full}", str(tmp_path)) for argument in arguments]
    command = [*COMMAND, "demo", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert says in done.stderr
