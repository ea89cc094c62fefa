"""Every query of every panel, annotation and variable, run for real: it returns data."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.dashboards import grafana
from tests.dashboards.conftest import Monitored
from tests.dashboards.grafana import ALL, Dashboard, Target, Window

TARGETS = [target for each in grafana.dashboards() for target in each.targets]
SQL = "grafana-postgresql-datasource"


@pytest.fixture(scope="module")
def window(monitored: Monitored) -> Window:
    """From the deploy on: the window before it holds failures, too."""
    return Window(monitored.deployed, time.time())


@pytest.fixture(scope="module")
def values(monitored: Monitored, window: Window) -> dict[str, dict[str, Any]]:
    """What the variables of each dashboard say, found by their own queries."""
    return {each.name: chosen(each, monitored, window) for each in grafana.dashboards()}


def chosen(board: Dashboard, monitored: Monitored, window: Window) -> dict[str, Any]:
    found: dict[str, Any] = {"smoothed": "1h", **board.constants}
    for variable in board.variables:
        if variable["type"] == "query":
            found[variable["name"]] = _first_choice(variable, found, monitored, window)
    return found


def _first_choice(
    variable: Mapping[str, Any], known: Mapping[str, Any], monitored: Monitored, window: Window
) -> Any:
    query = variable["query"]
    if variable["datasource"]["type"] == SQL:
        rows = monitored.rows(grafana.sql(query, known, window))
        options = [str(row.get("__value", next(iter(row.values())))) for row in rows]
    else:
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
        options = monitored.label_values(grafana.promql(selector, known, window), label)
    assert options, f"the variable {variable['name']} has nothing to choose"
    if variable.get("current", {}).get("value") == ALL:
        return variable.get("allValue") or options
    return options[0]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_query_returns_data(
    monitored: Monitored, window: Window, values: dict[str, dict[str, Any]], target: Target
) -> None:
    if target.source == SQL:
        assert monitored.rows(grafana.sql(target.text, values[target.dashboard], window))
        return
    expression = grafana.promql(target.text, values[target.dashboard], window)
    if target.instant:
        found = [series["value"] for series in monitored.query(expression, window.end)]
    else:
        series = monitored.query_range(expression, window)
        found = [value for each in series for value in each["values"]]
    assert any(not math.isnan(float(value)) for _, value in found), expression
