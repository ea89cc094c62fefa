"""Running pipelines: what they are given, and what happens when they fail or stall."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from memtrace_collector.bench import run, running
from memtrace_collector.bench.folder import RunFolder, RunInfo
from memtrace_collector.errors import UnreachableError, WrongUseError
from tests.memtrace_collector.bench import recorded

INFO = RunInfo(seed=1, per_kind=1, split="dev", systems=("rag", "staged"), kinds=())
CASES = [
    recorded.planned("r1", system="rag"),
    recorded.planned("r2", system="rag"),
    recorded.planned("s1", system="staged"),
]


def program(tmp_path: Path, body: str) -> str:
    """An interpreter that takes `-m module --plan … --outcomes …` and runs ``body`` instead."""
    script = tmp_path / "pipeline.py"
    script.write_text(f"import os, sys, time\n{body}\n")
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit 0\nexec {sys.executable} {script} "$@"\n')
    path.chmod(0o755)
    return str(path)


def silent(*_: object) -> None:
    """No progress."""


def go(folder: RunFolder, python: str, **more: object) -> list[str]:
    programs = run.Programs(python_of=lambda system: python, **more)  # type: ignore[arg-type]
    return run.go_on(folder, programs, silent)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    run.start(made, INFO, CASES)
    return made


def test_a_pipeline_that_fails_is_told_with_its_last_words_and_ends_no_other(
    folder: RunFolder, tmp_path: Path
) -> None:
    python = program(
        tmp_path, "sys.exit('no such reranker') if 'rag' in sys.argv[2] else sys.exit(0)"
    )
    (failed,) = go(folder, python)
    assert failed.startswith("rag: ") and "no such reranker" in failed
    assert (folder.root / "traces" / "staged-1" / "facts.db").exists()


def test_a_pipeline_finds_the_receiver_and_none_of_the_users_settings(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("MEMTRACE_DIGEST_KEY", "mine")
    told = tmp_path / "environment.txt"
    body = (
        f"open({str(told)!r}, 'w').write('\\n'.join(f'{{k}}={{v}}' for k, v in os.environ.items()))"
    )
    assert go(folder, program(tmp_path, body), systems=("rag",)) == []
    found = dict(each.split("=", 1) for each in told.read_text().splitlines() if "=" in each)
    assert found["OTEL_EXPORTER_OTLP_ENDPOINT"].startswith("http://127.0.0.1:")
    assert "127.0.0.1" in found["NO_PROXY"]
    assert not {"OTEL_TRACES_SAMPLER", "OPENAI_API_KEY", "MEMTRACE_DIGEST_KEY"} & found.keys()


def test_only_the_systems_that_are_asked_for_go_on(folder: RunFolder, tmp_path: Path) -> None:
    go(folder, program(tmp_path, ""), systems=("staged",))
    assert [path.name for path in (folder.root / "traces").iterdir()] == ["staged-1"]


def test_a_pipeline_that_stalls_is_given_up(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "STALL_SECONDS", 0.5)
    (failed,) = go(folder, program(tmp_path, "time.sleep(60)"), systems=("rag",))
    assert "ended no case" in failed


def test_a_stopped_run_ends_its_program_and_raises_nothing(
    folder: RunFolder, tmp_path: Path
) -> None:
    python = program(tmp_path, "time.sleep(60)")
    unit, stop = folder.next_unit("rag"), threading.Event()
    stop.set()
    running.run_unit(unit, CASES[:2], python, stop, silent)
    assert unit.outcomes() == [] and (unit.traces / "facts.db").exists()


def test_a_second_run_takes_another_unit(folder: RunFolder, tmp_path: Path) -> None:
    python = program(tmp_path, "")
    go(folder, python, systems=("rag",))
    assert folder.next_unit("rag").name == "rag-2"


def test_where_nothing_can_be_run_every_reason_is_told(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(WrongUseError) as told:
        go(folder, str(tmp_path / "nothing"))
    assert "rag: " in str(told.value) and "staged: " in str(told.value)
    assert set(folder.info().skipped_systems) == {"rag", "staged"}


def test_an_empty_plan_and_a_second_plan_are_refused(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="nothing was planned"):
        run.start(RunFolder(tmp_path / "other"), INFO, [])
    with pytest.raises(WrongUseError, match="a run already"):
        run.start(folder, INFO, CASES)


def test_a_program_that_cannot_be_started_is_unreachable(folder: RunFolder, tmp_path: Path) -> None:
    broken = program(tmp_path, "sys.exit(9)")
    with pytest.raises(UnreachableError, match="exit code 9"):
        running.run_unit(folder.next_unit("rag"), CASES[:2], broken, threading.Event(), silent)
