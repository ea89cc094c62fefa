"""An answer that cannot be judged is said, not swallowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.runtime import judges


def test_attribute_names_what_it_could_not_judge_and_exits_4(
    run: Any, imported: Any, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = imported("overwritten")

    def failing(case: object) -> object:
        raise RuntimeError("poison")

    monkeypatch.setattr(judges, "attribute", failing)
    result = run("attribute", "--format", "json")
    assert result.exit_code == 4
    assert result.stdout.strip() == "[]"
    assert expected["answer"]["spanId"] in result.stderr
    assert "poison" in result.stderr
    (case,) = json.loads(run("verdicts", "--set-aside", "--format", "json").stdout)
    assert case["answer"] == expected["answer"] and case["reason"] == "RuntimeError: poison"
    assert expected["answer"]["spanId"] in run("verdicts", "--set-aside").stdout
    found = run("doctor", "--format", "json")
    (check,) = (each for each in json.loads(found.stdout) if each["check"] == "flagged answers")
    assert check["state"] == "finding" and "1 set aside" in check["says"]

    monkeypatch.undo()
    monkeypatch.setenv("MEMTRACE_STORE", str(store))
    assert len(json.loads(run("attribute", "--format", "json").stdout)) == 1
    assert json.loads(run("verdicts", "--set-aside", "--format", "json").stdout) == []
