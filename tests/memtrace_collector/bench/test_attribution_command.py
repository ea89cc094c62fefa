"""`bench attribution` as users call it: real pipelines over an excerpt of RealMem."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memtrace_collector.bench.folder import RunFolder
from memtrace_collector.cli import cli
from tests.memtrace_collector import running

DATA = Path(__file__).parent / "data"
KINDS = "left_out,trimmed,declined,control"
SYSTEMS = "mem0-1,langgraph,rag,long-context,staged"
RUN = ("--data", str(DATA), "--split", "dev", "--per-kind", "1", "--processes", "1")


def bench(out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "attribution", "--out", str(out), *arguments])


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    out = tmp_path_factory.mktemp("bench") / "run"
    done = bench(
        out,
        *RUN,
        "--systems",
        SYSTEMS,
        "--kinds",
        KINDS,
        "--variants",
        "given,shuffled",
        "--at-once",
        "2",
    )
    assert done.exit_code == 0, done.output
    return RunFolder(out)


def report(folder: RunFolder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder.root / "report.json").read_text())
    return found


def test_every_planned_case_ran_and_its_truth_is_in_the_record(sample: RunFolder) -> None:
    run = report(sample)["run"]
    assert run["ran"] == run["planned"] > 10
    assert run["problems"] == []
    assert run["counted"] >= run["ran"] - 3, run["not_counted_by_kind"]


def test_each_case_that_counts_is_scored_in_each_variant(sample: RunFolder) -> None:
    rows = sample.rows()
    given = {row.case for row in rows if row.variant == "given"}
    assert given == {row.case for row in rows if row.variant == "shuffled"}
    assert len(given) == report(sample)["run"]["counted"]
    assert {row.system for row in rows} == set(SYSTEMS.split(","))
    assert not [row.judgement.failed for row in rows if row.judgement.failed]
    assert {row.source for row in rows} == {"realmem"}


def test_most_of_the_sample_is_judged_as_planted_and_no_right_answer_is_blamed(
    sample: RunFolder,
) -> None:
    figures = report(sample)["parts"]["dev"]["variants"]["given"]
    assert figures["operation"]["share"] >= 0.5
    assert figures["false_blame"]["hits"] == 0
    assert report(sample)["parts"]["dev"]["shuffled"]["worse"] == 0


def test_the_report_is_written_for_people_too(sample: RunFolder) -> None:
    text = (sample.root / "report.md").read_text()
    assert "| exact operation |" in text and "*word overlap*" in text
    assert "### By system (given)" in text and "| rag |" in text


def test_one_case_is_shown_with_its_question_truth_and_verdict(sample: RunFolder) -> None:
    row = next(row for row in sample.rows() if row.kinds == ("left_out",))
    shown = bench(sample.root, "--show", row.case)
    assert shown.exit_code == 0, shown.output
    for part in ("question: ", "expected: ", "truth:\n  omission at extract", "verdict: ", "path:"):
        assert part in shown.output
    unknown = bench(sample.root, "--show", "no-such-case")
    assert unknown.exit_code == 2 and "no-such-case" in unknown.output


def test_rescoring_runs_no_pipeline_and_gives_the_same_rows(
    sample: RunFolder, tmp_path: Path
) -> None:
    before = [(row.case, row.judgement) for row in sample.rows() if row.variant == "given"]
    units = [unit.name for unit in sample.units()]
    again = bench(
        sample.root, "--rescore", "--variants", "given", "--processes", "1", "--worst", "5",
        "--format", "json",
    )  # fmt: skip
    assert again.exit_code == 0, again.output
    assert [(row.case, row.judgement) for row in sample.rows()] == before
    assert [unit.name for unit in sample.units()] == units
    assert "worst" in json.loads(again.stdout)


def test_a_run_that_is_complete_runs_nothing_again(sample: RunFolder) -> None:
    units = [unit.name for unit in sample.units()]
    done = bench(sample.root, "--variants", "given", "--processes", "1")
    assert done.exit_code == 0, done.output
    assert [unit.name for unit in sample.units()] == units


def test_another_run_does_not_go_into_the_same_folder(sample: RunFolder) -> None:
    other = bench(sample.root, *RUN, "--seed", "2", "--systems", SYSTEMS, "--kinds", KINDS)
    assert other.exit_code == 2 and "other settings" in other.output


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    out = tmp_path / "run"
    line = running.command(
        "bench", "attribution", "--out", str(out), *RUN,
        "--systems", "staged", "--kinds", "left_out,deleted,not_searched,declined,control",
        "--variants", "given",
    )  # fmt: skip
    folder = RunFolder(out)
    with (tmp_path / "first.log").open("wb") as log:
        first = subprocess.Popen(line, stdout=log, stderr=log, env=running.environment())
        running.eventually(lambda: bool(folder.finished("staged")), "a first case")
        first.send_signal(signal.SIGTERM)
        assert first.wait(running.DEADLINE_SECONDS) != 0
    done = folder.finished("staged")
    assert done and len(done) < len(folder.plan())
    again = subprocess.run(
        line, env=running.environment(), capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    ran = [outcome.case.id for unit in folder.units() for outcome in unit.outcomes()]
    assert sorted(ran) == sorted(case.id for case in folder.plan())
    assert [unit.name for unit in folder.units()] == ["staged-1", "staged-2"]


def test_a_system_that_cannot_be_run_here_is_named_and_left_out(tmp_path: Path) -> None:
    """This interpreter has mem0 1.x."""
    out = tmp_path / "run"
    line = ("--systems", "mem0-2,rag", "--kinds", "declined", "--variants", "given")
    done = bench(out, *RUN, *line)
    assert done.exit_code == 0, done.output
    assert "mem0-2 was left out: mem0ai 1." in done.stderr and "--mem0-2-python" in done.stderr
    assert {unit.system for unit in RunFolder(out).units()} == {"rag"}


def test_where_no_system_can_be_run_the_extra_is_named(tmp_path: Path) -> None:
    line = ("--systems", "mem0-2", "--kinds", "declined")
    done = bench(tmp_path / "run", *RUN, *line, "--mem0-2-python", str(tmp_path / "no-python"))
    assert done.exit_code == 2
    assert "pip install 'memtrace-otel[bench]'" in done.stderr and "no-python" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--data"),
        (("--systems", "mem9"), "mem9"),
        (("--kinds", "sabotage"), "sabotage"),
        (("--variants", "sideways"), "sideways"),
        (("--rescore",), "no folder of a benchmark run"),
    ],
)
def test_wrong_use_is_told_and_ends_with_two(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    done = bench(tmp_path / "run", *arguments)
    assert done.exit_code == 2 and told in done.output


def test_a_folder_without_dialogues_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "other.json").write_text("{}")
    done = bench(tmp_path / "run", "--data", str(tmp_path / "data"))
    assert done.exit_code == 2 and "RealMem" in done.output
