"""An answer that cannot be judged is said, not swallowed."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_collector.runtime import judges


def test_attribute_names_what_it_could_not_judge_and_exits_4(
    run: Any, imported: Any, monkeypatch: pytest.MonkeyPatch
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
