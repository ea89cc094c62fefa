"""From a recorded run to its figures: collecting, judging, the folder, the baselines."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.bench import judging, scoring, variants
from memtrace_collector.bench.folder import RunFolder
from memtrace_collector.bench.judging import collect, facts_path, judge_case, log_folder, project
from memtrace_collector.bench.score import Row
from memtrace_collector.bench.scoring import Scored, Selection
from memtrace_collector.errors import DamagedError, NotFoundError
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.bench import recorded

NAMES = recorded.PLAIN[::4]
HELD_OUT = frozenset(NAMES[::3])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return recorded.make(tmp_path_factory.mktemp("bench") / "run", NAMES, HELD_OUT)


@pytest.fixture(scope="module")
def scored(folder: RunFolder) -> Scored:
    return scoring.score(folder, Selection(), processes=1)


def of(rows: tuple[Row, ...], variant: str) -> dict[str, Row]:
    return {row.case: row for row in rows if row.variant == variant}


def test_every_case_is_judged_in_every_variant(scored: Scored) -> None:
    for name in variants.NAMES:
        judged = of(scored.rows, name)
        missing = set(NAMES) - set(judged)
        kinds = {of(scored.rows, "given")[case].truth.error_type for case in missing}
        assert kinds <= ({"bad_reference"} if name == "no_expected" else set())
    lossy = [row for row in scored.rows if row.variant == "lossy"]
    assert len(lossy) == len(NAMES) * len(variants.LOSSY)


def test_scenarios_are_judged_as_the_decision_table_says(scored: Scored) -> None:
    """The same rules, through log, store, flag and scoring: nothing on the way loses a case."""
    given = of(scored.rows, "given").values()
    right = [row.marks.operation for row in given if not row.truth.control]
    assert sum(right) / len(right) > 0.9
    assert not [row.judgement.failed for row in given if row.judgement.failed]


def test_two_processes_give_the_same_rows_as_one(folder: RunFolder, scored: Scored) -> None:
    selection = Selection(variants=("given", "shuffled"))
    both = scoring.score(folder, selection, processes=2)
    for name in selection.variants:
        before, after = of(scored.rows, name), of(both.rows, name)
        assert list(before) == list(after)
        assert [r.judgement for r in before.values()] == [r.judgement for r in after.values()]


def test_memory_and_sqlite_give_the_same_verdicts(folder: RunFolder) -> None:
    (unit,) = folder.units()
    project(unit)
    in_memory = InMemoryFactStore()
    spans = variants.recorded_spans(log_folder(unit))
    variants.fill(in_memory, variants.damaged(variants.GIVEN, spans))
    asked = collect(unit, {}).asked
    for variant in (variants.GIVEN, variants.FOUND):
        with closing(SqliteFactStore(facts_path(unit))) as sqlite:
            for each in asked[:12]:
                _, one = judge_case(sqlite, each, variant)
                _, other = judge_case(in_memory, each, variant)
                assert isinstance(one, Verdict) and one == other, each.outcome.case.id


def test_held_out_cases_stand_apart(scored: Scored) -> None:
    parts = scored.figures["parts"]
    assert parts["dev"]["cases"] + parts["held_out"]["cases"] == parts["all"]["cases"]
    assert parts["held_out"]["cases"] == len(HELD_OUT)


def test_what_was_written_can_be_read_again(folder: RunFolder) -> None:
    done = scoring.score(folder, Selection(variants=("given",)), processes=1)
    assert tuple(folder.rows()) == done.rows
    written = json.loads((folder.root / "report.json").read_text())
    assert written["parts"].keys() == done.figures["parts"].keys()


def test_a_selection_takes_split_kind_and_system(folder: RunFolder) -> None:
    dev = scoring.score(folder, Selection(split="dev", variants=("given",)), processes=1)
    assert {row.case for row in dev.rows} == set(NAMES) - HELD_OUT
    kind = next(row.kind for row in dev.rows if row.kind != "control")
    one = scoring.score(folder, Selection(kinds=(kind,), variants=("given",)), processes=1)
    assert {row.kind for row in one.rows} == {kind}
    with pytest.raises(NotFoundError, match="no case"):
        scoring.score(folder, Selection(systems=("rag",)), processes=1)


def test_a_case_that_cannot_be_judged_ends_nothing_and_is_named(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(case: object) -> Verdict:
        raise ValueError("no such rule")

    monkeypatch.setattr(judging, "attribute", broken)
    done = scoring.score(folder, Selection(variants=("given",)), processes=1)
    assert all(row.marks.abstained for row in done.rows)
    failures = done.figures["parts"]["all"]["failures"]
    assert len(failures) == len(NAMES) and "ValueError: no such rule" in failures[0]


def test_an_outcome_that_is_no_case_is_not_scored_and_says_why(tmp_path: Path) -> None:
    made = recorded.make(tmp_path / "run", NAMES[:4])
    (unit,) = made.units()
    whole = unit.outcomes()
    changed = [
        replace(each, **change)
        for each, change in zip(
            whole,
            (
                {"clean_right": False},
                {"truths": ()},
                {"skipped": "never came to pass: deleted m1"},
                {},
            ),
        )
    ]
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each in changed)
    unit.outcomes_path.write_bytes(lines)
    done = scoring.score(made, Selection(variants=("given",)), processes=1)
    assert {row.case for row in done.rows} == {whole[3].case.id}
    assert done.run["not_counted"] == {
        "the pipeline answers wrongly without any fault": 1,
        "the fault took no effect": 1,
        "skipped: never came to pass": 1,
    }


def test_a_truth_or_an_answer_that_was_not_recorded_is_a_problem(tmp_path: Path) -> None:
    made = recorded.make(tmp_path / "run", NAMES[:2])
    (unit,) = made.units()
    one, other = unit.outcomes()
    truths = tuple(replace(truth, span_id="f" * 16) for truth in other.truths)
    changed = [replace(one, span_id="e" * 16), replace(other, truths=truths)]
    unit.outcomes_path.write_bytes(b"".join(msgspec.json.encode(o) + b"\n" for o in changed))
    done = scoring.score(made, Selection(variants=("given",)), processes=1)
    problems = "\n".join(done.run["problems"])
    assert f"{one.case.id}: the answer" in problems
    assert f"{other.case.id}: the operation" in problems


def test_an_outcome_without_a_decisive_truth_is_a_problem_and_no_control(tmp_path: Path) -> None:
    made = recorded.make(tmp_path / "run", NAMES[:2])
    (unit,) = made.units()
    one, other = unit.outcomes()
    truths = tuple(replace(truth, role="also") for truth in other.truths)
    lines = [msgspec.json.encode(o) + b"\n" for o in (one, replace(other, truths=truths))]
    unit.outcomes_path.write_bytes(b"".join(lines))
    done = scoring.score(made, Selection(variants=("given",)), processes=1)
    assert {row.case for row in done.rows} == {one.case.id}
    assert done.run["problems"] == [f"{other.case.id}: no truth is decisive"]


def test_a_line_that_was_cut_off_is_no_outcome_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    made = recorded.make(tmp_path / "run", NAMES[:2])
    (unit,) = made.units()
    body = unit.outcomes_path.read_bytes()
    unit.outcomes_path.write_bytes(body[:-10])
    assert [o.case.id for o in unit.outcomes()] == [NAMES[0]]
    assert made.finished(recorded.SYSTEM) == {NAMES[0]}
    unit.outcomes_path.write_bytes(b"{broken\n" + body)
    with pytest.raises(DamagedError, match="line 1"):
        unit.outcomes()


def test_failures_are_grouped_by_what_was_planted_and_said(scored: Scored) -> None:
    assert scoring.worst(scored.rows, "given", 50) != scoring.worst(scored.rows, "no_content", 50)
    groups = scoring.worst(scored.rows, "no_content", 50)
    counts = [group["count"] for group in groups]
    assert counts == sorted(counts, reverse=True)
    bare = [row for row in of(scored.rows, "no_content").values() if not row.held_out]
    wrong = [row for row in bare if not row.truth.control and not row.marks.joint]
    blamed = [row for row in bare if row.truth.control and row.marks.blames_memory]
    assert sum(counts) == len(wrong) + len(blamed)


def test_failures_that_are_kept_aside_are_listed_only_when_nothing_else_is(
    scored: Scored,
) -> None:
    kept = [row for row in scored.rows if row.held_out]
    listed = {c for group in scoring.worst(scored.rows, "no_content", 99) for c in group["cases"]}
    assert listed and listed.isdisjoint(HELD_OUT)
    assert {
        c for group in scoring.worst(kept, "no_content", 99) for c in group["cases"]
    } <= HELD_OUT
    assert scoring.worst(kept, "no_content", 99)
