"""What is checked in is what the generator writes, and says what exists."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.telemetry.catalog import METRICS
from tests.dashboards import grafana
from tests.dashboards.grafana import Dashboard
from tests.memtrace_collector.running import ROOT, environment

BOARDS = grafana.dashboards()
SDK = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Grafana's SDK for Python needs Python 3.11"
)
_SELECTOR = re.compile(r"\b(memtrace_[a-z_]+)(?:\{([^}]*)\})?")
_FROM_PROMETHEUS = {"job", "instance", "le"}


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dashboards.source", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@SDK
def test_what_is_checked_in_is_what_the_generator_writes() -> None:
    done = generate("--check")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@SDK
def test_a_difference_is_found_and_written_anew(tmp_path: Path) -> None:
    assert generate("--out", str(tmp_path)).returncode == 0
    changed = tmp_path / "grafana" / "dashboards" / "failures.json"
    changed.write_text(changed.read_text().replace("Latest failures", "Some failures"))
    found = generate("--check", "--out", str(tmp_path))
    assert (found.returncode, found.stdout) == (1, "differs: grafana/dashboards/failures.json\n")
    assert generate("--out", str(tmp_path)).returncode == 0
    assert generate("--check", "--out", str(tmp_path)).returncode == 0


@SDK
def test_links_lead_where_the_generator_is_told(tmp_path: Path) -> None:
    there = ("--explorer", "https://memtrace.example", "--jaeger", "https://traces.example/ui")
    assert generate("--out", str(tmp_path), *there).returncode == 0
    text = (tmp_path / "grafana" / "dashboards" / "failures.json").read_text()
    constants = Dashboard("failures", json.loads(text)).constants
    assert constants == {
        "explorer": "https://memtrace.example",
        "jaeger": "https://traces.example/ui",
    }


@SDK
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_models_of_grafana_take_a_dashboard_as_it_is(board: Dashboard) -> None:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard as Model

    register_default_plugins()
    read = Model.from_json(json.loads(json.dumps(board.json)))
    assert json.loads(json.dumps(read, cls=JSONEncoder)) == board.json


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_panels_have_ids_and_places_of_their_own(board: Dashboard) -> None:
    ids = Counter(panel["id"] for panel in board.json["panels"])
    assert max(ids.values()) == 1
    places = [panel["gridPos"] for panel in board.json["panels"]]
    assert not [pair for pair in combinations(places, 2) if _overlap(*pair)]
    assert all(place["x"] + place["w"] <= 24 for place in places)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_panels_draw_metrics_and_attributes_that_there_are(board: Dashboard) -> None:
    known = {metric.prometheus: metric for metric in METRICS.values()}
    found = [
        m for t in board.targets if t.source == "prometheus" for m in _SELECTOR.findall(t.text)
    ]
    assert found
    for name, matchers in found:
        metric = known[re.sub("_(bucket|sum|count)$", "", name)]
        labels = {re.split("[=!]", each)[0] for each in matchers.split(",") if each}
        assert labels <= {*metric.attributes, *_FROM_PROMETHEUS}, name


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_panel_says_what_it_means_that_there_is_nothing_to_show(board: Dashboard) -> None:
    for panel in board.panels:
        empty = panel["fieldConfig"]["defaults"]["noValue"]
        assert f'"{empty}" means that there is nothing to show.' in panel["description"]


def test_each_dashboard_leads_to_the_others() -> None:
    assert {board.json["uid"] for board in BOARDS} == {
        "memtrace-memory-health",
        "memtrace-failures",
        "memtrace-pipeline",
    }
    for board in BOARDS:
        (link,) = [each for each in board.json["links"] if each["type"] == "dashboards"]
        assert set(link["tags"]) <= set(board.json["tags"]) and link["keepTime"]


def test_nothing_that_somebody_chose_reaches_sql_as_it_is() -> None:
    for board in BOARDS:
        for target in board.targets:
            if target.source != "prometheus":
                chosen = re.findall(r"\$\{?(?!__)\w+[^}]*\}?", target.text)
                assert all(each.endswith(":sqlstring}") for each in chosen), target


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )
