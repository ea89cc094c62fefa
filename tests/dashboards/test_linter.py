"""The dashboards keep the rules of Grafana's linter, but for exceptions that say why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests import components
from tests.dashboards import grafana, linter
from tests.dashboards.grafana import Dashboard, Window

LINT = yaml.safe_load((grafana.FOLDER / ".lint").read_text())
BOARDS = grafana.dashboards()
WINDOW = Window(0, 3600)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
@pytest.mark.parametrize("rule", linter.RULES)
def test_a_rule_is_kept_or_its_exception_is_needed(rule: str, board: Dashboard) -> None:
    found = list(linter.RULES[rule](board))
    excluded = linter.excluded(LINT, rule, board)
    assert not [each for each in found if not each.startswith(tuple(excluded))]
    assert all(any(each.startswith(beginning) for each in found) for beginning in excluded)


def test_an_exception_says_why_and_names_a_rule() -> None:
    for rule, exclusion in LINT["exclusions"].items():
        assert rule in linter.RULES and exclusion["reason"]


def test_every_expression_is_promql(tmp_path: Path) -> None:
    """target-promql-rule, by Prometheus's own parser."""
    components.prometheus()
    expressions = [
        grafana.promql(target.text, _any(board), WINDOW)
        for board in BOARDS
        for target in board.targets
        if target.source == "prometheus"
    ]
    rules = [{"record": f"panel:{n}", "expr": each} for n, each in enumerate(expressions)]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def _any(board: Dashboard) -> dict[str, str]:
    return {variable["name"]: "x" for variable in board.variables} | {"smoothed": "1h"}
