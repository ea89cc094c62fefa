"""What a dashboard's variables say when nobody has chosen anything yet."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.dashboards import grafana
from tests.dashboards.grafana import ALL, Dashboard, Window
from tests.dashboards.sources import Monitored

SQL = "grafana-postgresql-datasource"


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
        asked = re.fullmatch(r"label_values\((.*), (\w+)\)", query)
        assert asked is not None
        options = monitored.label_values(grafana.promql(asked[1], known, window), asked[2])
    assert options, f"the variable {variable['name']} has nothing to choose"
    if variable.get("current", {}).get("value") == ALL:
        return variable.get("allValue") or options
    return options[0]
