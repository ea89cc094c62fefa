"""What Grafana does with a dashboard before a query leaves and after a row came back.

Written after Grafana's documentation of variables, macros and data links, for tests that run
queries and follow links without a Grafana.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards" / "grafana" / "dashboards"
ALL = "$__all"

_VARIABLE = re.compile(
    r"\$\{(?P<name>\w+)(?:\.(?P<path>[^:}]+))?(?::(?P<format>\w+))?\}|\$(?P<bare>\w+)"
)
_FIELD = re.compile(r'fields(?:\.(?P<name>[\w.#-]+)|\["(?P<quoted>[^"]+)"\])')
_TIME_FILTER = re.compile(r"\$__timeFilter\((?P<column>[^)]+)\)")
_URI_SAFE = ";,/?:@&=+$-_.!~*'()#"
"""What JavaScript's ``encodeURI`` leaves as it is."""

Value = "str | Sequence[str]"


@dataclass(frozen=True)
class Window:
    """The time range of a dashboard, in seconds since 1970."""

    start: float
    end: float

    @property
    def macros(self) -> dict[str, str]:
        seconds = max(1, math.ceil(self.end - self.start))
        return {"__range": f"{seconds}s", "__rate_interval": "20s", "__interval": "5s"}


@dataclass(frozen=True)
class Target:
    """A query of a panel, of an annotation or of a variable."""

    dashboard: str
    panel: str
    source: str
    """Type of its data source."""
    text: str
    instant: bool = False

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel}: {self.text[:40]}"


@dataclass(frozen=True)
class Dashboard:
    """A dashboard as Grafana reads it."""

    name: str
    json: Mapping[str, Any] = field(repr=False)

    @property
    def panels(self) -> list[dict[str, Any]]:
        """Every panel, also those of a closed row; rows themselves are none."""
        found = list(_flat(self.json["panels"]))
        return [panel for panel in found if panel["type"] != "row"]

    def panel(self, title: str) -> dict[str, Any]:
        return next(panel for panel in self.panels if panel["title"] == title)

    @property
    def variables(self) -> list[dict[str, Any]]:
        return list(self.json["templating"]["list"])

    @property
    def constants(self) -> dict[str, str]:
        return {v["name"]: v["query"] for v in self.variables if v["type"] == "constant"}

    @property
    def targets(self) -> list[Target]:
        """The queries of panels and annotations."""
        found = [
            Target(
                dashboard=self.name,
                panel=panel["title"],
                source=target["datasource"]["type"],
                text=target.get("expr") or target["rawSql"],
                instant=bool(target.get("instant")),
            )
            for panel in self.panels
            for target in panel["targets"]
        ]
        return found + [
            Target(self.name, annotation["name"], "prometheus", annotation["expr"])
            for annotation in self.json["annotations"]["list"]
            if annotation.get("expr")
        ]


def dashboards() -> list[Dashboard]:
    """Those that are checked in."""
    return [
        Dashboard(path.stem, json.loads(path.read_text("utf-8")))
        for path in sorted(FOLDER.glob("*.json"))
    ]


def dashboard(name: str) -> Dashboard:
    return next(each for each in dashboards() if each.name == name)


def promql(text: str, values: Mapping[str, str], window: Window) -> str:
    """An expression as it reaches Prometheus; several values are alternatives."""
    return _VARIABLE.sub(lambda m: _known(m, {**values, **window.macros}), text)


def sql(text: str, values: Mapping[str, Any], window: Window) -> str:
    """A statement as it reaches PostgreSQL."""
    first, last = (_rfc3339(moment) for moment in (window.start, window.end))
    text = _TIME_FILTER.sub(lambda m: f"{m['column'].strip()} BETWEEN '{first}' AND '{last}'", text)
    return _VARIABLE.sub(lambda m: _in_sql(m, values), text)


def link(url: str, row: Mapping[str, Any], values: Mapping[str, str], window: Window) -> str:
    """The URL that a data link opens for ``row`` (a column's name: its value).

    Knows ``${__data.fields.x}``, ``${__data.fields["x"]}``, ``${__url_time_range}`` and variables,
    with the formats ``raw`` and ``percentencode``; what has no format is encoded as by
    JavaScript's ``encodeURI``.
    """
    return _VARIABLE.sub(lambda m: _in_link(m, row, values, window), url)


def links(
    panel: Mapping[str, Any], row: Mapping[str, Any], values: Mapping[str, str], window: Window
) -> Iterator[tuple[str, str, str]]:
    """Column, title and URL of every link of a row; empty cells have none."""
    for override in panel["fieldConfig"]["overrides"]:
        column = override["matcher"]["options"]
        for each in override["properties"]:
            if each["id"] == "links" and row.get(column) not in (None, ""):
                for one in each["value"]:
                    yield column, one["title"], link(one["url"], row, values, window)


def _flat(panels: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for panel in panels:
        yield panel
        yield from _flat(panel.get("panels") or [])


def _known(match: re.Match[str], values: Mapping[str, str]) -> str:
    return values[match["name"] or match["bare"]]


def _in_sql(match: re.Match[str], values: Mapping[str, Any]) -> str:
    if match["format"] != "sqlstring":
        raise ValueError(f"{match[0]} puts what somebody chose into SQL as it is")
    value = values[match["name"]]
    several = [value] if isinstance(value, str) else value
    return ",".join("'{}'".format(each.replace("'", "''")) for each in several)


def _in_link(
    match: re.Match[str], row: Mapping[str, Any], values: Mapping[str, str], window: Window
) -> str:
    name = match["name"] or match["bare"]
    if name == "__url_time_range":
        return f"from={round(window.start * 1000)}&to={round(window.end * 1000)}"
    if name == "__data":
        found = _FIELD.fullmatch(match["path"] or "")
        if found is None:
            raise ValueError(f"no field: {match[0]}")
        value = row[found["name"] or found["quoted"]]
        text = "" if value is None else str(value)
    else:
        text = values[name]
    if match["format"] == "raw":
        return text
    return quote(text, safe="-_.!~*'()" if match["format"] == "percentencode" else _URI_SAFE)


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
