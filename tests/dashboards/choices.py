"""What a dashboard's variables say when nobody has chosen anything yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.dashboards import grafana
from tests.dashboards.grafana import ALL, Dashboard, Window
from tests.dashboards.sources import Monitored

SQL = "grafana-postgresql-datasource"
Options = Callable[[Mapping[str, Any], Mapping[str, Any]], "list[str]"]
"""The options of a query variable, given what the variables before it say."""
Rows = Callable[[str], "list[dict[str, Any]]"]


def chosen(board: Dashboard, options: Options) -> dict[str, Any]:
    """The value of each variable; of one whose options are all chosen, a list or what stands for
    all. One without options is empty, as Grafana has it."""
    found: dict[str, Any] = {"smoothed": "1h", **board.constants}
    for variable in board.variables:
        if variable["type"] not in ("query", "custom"):
            continue
        is_query = variable["type"] == "query"
        there = options(variable, found) if is_query else variable["query"].split(",")
        if variable.get("current", {}).get("value") == ALL:
            found[variable["name"]] = variable.get("allValue") or there
        else:
            found[variable["name"]] = there[0] if there else ""
    return found


def from_sources(monitored: Monitored, window: Window) -> Options:
    """Options as the data sources of this run have them; there are always some."""

    def options(variable: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
        if variable["datasource"]["type"] == SQL:
            found = from_rows(monitored.rows, window)(variable, known)
        else:
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"])
            assert asked is not None
            found = monitored.label_values(grafana.promql(asked[1], known, window), asked[2])
        assert found, f"the variable {variable['name']} has nothing to choose"
        return found

    return options


def from_rows(rows: Rows, window: Window) -> Options:
    """Options as PostgreSQL has them; other sources have none."""

    def options(variable: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
        if variable["datasource"]["type"] != SQL:
            return []
        found = rows(grafana.sql(variable["query"], known, window))
        return [str(row.get("__value", next(iter(row.values())))) for row in found]

    return options
