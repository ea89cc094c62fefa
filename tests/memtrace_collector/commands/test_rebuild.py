from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.memtrace_collector.commands.conftest import Answer, Run


def test_a_rebuilt_store_is_the_same_and_keeps_its_verdicts(
    ask: Answer, run: Run, imported: Callable[[str], Any]
) -> None:
    for name in ("omission", "merged_wrong", "overwritten"):
        imported(name)
    verdicts = ask("attribute")
    graphs = ask("graphs")
    checked = ask("rebuild", "--check")
    assert (checked["equal"], checked["exchanged"]) == (True, False)
    assert (ask("rebuild")["equal"], ask("graphs")) == (True, graphs)
    assert ask("verdicts") == verdicts
    assert ask("attribute") == verdicts, "looked at again, nothing new"
    assert "the same as the live store" in run("rebuild").output


def test_rules_judge_again_where_asked_and_the_cases_keep_their_ids(
    ask: Answer, run: Run, imported: Callable[[str], Any]
) -> None:
    for name in ("omission", "merged_wrong"):
        imported(name)
    before = ask("attribute")
    assert run("rebuild", "--check", "--cases").exit_code == 2
    assert ask("rebuild", "--cases")["dropped_verdicts"] == 2
    assert ask("verdicts") == []
    again = ask("attribute")
    assert [(v["id"], v["revision"], v["stage"]) for v in again] == [
        (v["id"], v["revision"], v["stage"]) for v in before
    ]


def test_a_difference_is_named_and_the_old_files_stay_beside(
    ask: Answer, run: Run, imported: Callable[[str], Any], store: Path
) -> None:
    imported("omission")
    graphs = ask("graphs")
    with closing(sqlite3.connect(store / "facts.db")) as facts:
        facts.execute("UPDATE graph SET graph_id = 'user:somebody'")
        facts.commit()
    result = run("rebuild", "--check")
    assert result.exit_code == 1
    assert "differs: user:somebody" in result.output
    assert run("rebuild").exit_code == 1
    assert ask("graphs") == graphs
    assert (store / "before-rebuild" / "facts.db").exists()


def test_a_folder_without_a_log_is_refused(run: Run) -> None:
    result = run("rebuild")
    assert result.exit_code == 2
    assert "no log" in result.output
