"""The rules of Grafana's dashboard-linter, after its documentation: what each finds wrong.

https://github.com/grafana/dashboard-linter/blob/main/docs/index.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.dashboards.grafana import Dashboard

_UNITS = frozenset(
    (
        *("none", "string", "short", "percent", "percentunit", "bytes", "decbytes", "Bps"),
        *("binBps", "s", "ms", "ns", "dateTimeAsIso", "dateTimeFromNow", "currencyUSD"),
        *("ops", "cps", "reqps", "rps", "iops", "bool", "hertz"),
    )
)
"""Of the units that Grafana knows, those that these dashboards may use."""
_WITH_UNITS = ("stat", "gauge", "table", "timeseries", "bargauge")
_WITH_SOURCE = ("stat", "gauge", "table", "timeseries")
_WITHOUT_TARGETS = ("row", "text", "dashlist", "news", "annolist", "alertlist")
_SELECTOR = re.compile(r"(?P<name>[a-z_:]+)\{(?P<matchers>[^}]*)\}")
_RANGED = re.compile(r"(?P<function>\w+)\((?P<name>[a-z_:]+)\{[^}]*\}\[(?P<range>[^\]]+)\]")
_LABEL_QUERY = re.compile(r"(label_values|label_names|metrics|query_result)\(.+\)")

Rule = Callable[[Dashboard], "Iterator[str]"]


def template_datasource(board: Dashboard) -> Iterator[str]:
    """Checks that the dashboard has a templated data source, named after its plugin."""
    found = [v for v in board.variables if v["type"] == "datasource"]
    if not found:
        yield "no variable for a data source"
    for variable in found:
        named = {f"{variable['query']}_datasource"} | ({"datasource"} if len(found) == 1 else set())
        if variable["name"] not in named:
            yield f"{variable['name']} should be one of {named}"
        if variable["label"].lower() != f"{variable['query']} data source":
            yield f"{variable['name']} is labelled {variable['label']}"


def template_job(board: Dashboard) -> Iterator[str]:
    """Checks that the dashboard has a templated job."""
    yield from _template(board, "job")


def template_instance(board: Dashboard) -> Iterator[str]:
    """Checks that the dashboard has a templated instance."""
    yield from _template(board, "instance")


def template_label_promql(board: Dashboard) -> Iterator[str]:
    """Checks that templated labels have proper PromQL expressions."""
    for variable in board.variables:
        if variable["type"] == "query" and not _LABEL_QUERY.fullmatch(variable["query"]):
            yield f"{variable['name']}: {variable['query']}"


def template_on_time_change_reload(board: Dashboard) -> Iterator[str]:
    """Checks that variables are read again when the time range changes."""
    for variable in board.variables:
        if variable["type"] == "query" and variable["refresh"] != 2:
            yield variable["name"]


def panel_datasource(board: Dashboard) -> Iterator[str]:
    """Checks that each panel uses a templated data source."""
    sources = {f"${{{v['name']}}}" for v in board.variables if v["type"] == "datasource"}
    for panel in board.panels:
        if panel["type"] in _WITH_SOURCE and panel["datasource"]["uid"] not in sources:
            yield panel["title"]


def panel_title_description(board: Dashboard) -> Iterator[str]:
    """Checks that each panel has a title and a description."""
    for panel in board.panels:
        if not panel.get("title") or not panel.get("description"):
            yield str(panel.get("title"))


def panel_units(board: Dashboard) -> Iterator[str]:
    """Checks that each panel has a valid unit."""
    for panel in board.panels:
        unit = panel["fieldConfig"]["defaults"].get("unit")
        if panel["type"] in _WITH_UNITS and unit not in _UNITS:
            yield f"{panel['title']}: {unit}"


def panel_no_targets(board: Dashboard) -> Iterator[str]:
    """Checks that each panel has at least one target."""
    for panel in board.panels:
        if panel["type"] not in _WITHOUT_TARGETS and not panel.get("targets"):
            yield panel["title"]


def target_rate_interval(board: Dashboard) -> Iterator[str]:
    """Checks that rates are taken over ``$__rate_interval``."""
    for title, expression in _expressions(board):
        for ranged in _RANGED.finditer(expression):
            if ranged["function"] in ("rate", "irate") and ranged["range"] != "$__rate_interval":
                yield f"{title}: {ranged[0]}"


def target_job(board: Dashboard) -> Iterator[str]:
    """Checks that every selector has a matcher of the job."""
    yield from _without_matcher(board, 'job=~"$job"')


def target_instance(board: Dashboard) -> Iterator[str]:
    """Checks that every selector has a matcher of the instance."""
    yield from _without_matcher(board, 'instance=~"$instance"')


def target_counter_agg(board: Dashboard) -> Iterator[str]:
    """Checks that a counter is aggregated with rate, irate or increase."""
    for title, expression in _expressions(board):
        counters = len([m for m in _SELECTOR.finditer(expression) if m["name"].endswith("_total")])
        aggregated = [
            m
            for m in _RANGED.finditer(expression)
            if m["name"].endswith("_total") and m["function"] in ("rate", "irate", "increase")
        ]
        if len(aggregated) < counters:
            yield title


def uneditable_dashboard(board: Dashboard) -> Iterator[str]:
    """Checks that the dashboard is not editable."""
    if board.json.get("editable") is not False:
        yield board.name


RULES: Mapping[str, Rule] = {
    "template-datasource-rule": template_datasource,
    "template-job-rule": template_job,
    "template-instance-rule": template_instance,
    "template-label-promql-rule": template_label_promql,
    "template-on-time-change-reload-rule": template_on_time_change_reload,
    "panel-datasource-rule": panel_datasource,
    "panel-title-description-rule": panel_title_description,
    "panel-units-rule": panel_units,
    "panel-no-targets-rule": panel_no_targets,
    "target-rate-interval-rule": target_rate_interval,
    "target-job-rule": target_job,
    "target-instance-rule": target_instance,
    "target-counter-agg-rule": target_counter_agg,
    "uneditable-dashboard": uneditable_dashboard,
}
"""All but target-promql-rule, for which Prometheus's own parser is asked."""


def excluded(lint: Mapping[str, Any], rule: str, board: Dashboard) -> list[str]:
    """How findings begin that a ``.lint`` file excludes for a dashboard: empty for any."""
    entries = lint["exclusions"].get(rule, {"entries": []}).get("entries", [{}])
    here = [each for each in entries if each.get("dashboard") in (None, board.json["title"])]
    return [f"{each['panel']}: " if "panel" in each else "" for each in here]


def _template(board: Dashboard, name: str) -> Iterator[str]:
    variable = next((v for v in board.variables if v["name"] == name), None)
    if variable is None:
        yield f"no variable {name}"
        return
    expected = {"type": "query", "label": name.title(), "multi": True, "allValue": ".+"}
    for key, value in expected.items():
        if variable.get(key) != value:
            yield f"{name}: {key} is {variable.get(key)}, not {value}"
    if variable["datasource"]["uid"] != "${prometheus_datasource}":
        yield f"{name}: its data source is no variable"


def _without_matcher(board: Dashboard, matcher: str) -> Iterator[str]:
    for title, expression in _expressions(board):
        for selector in _SELECTOR.finditer(expression):
            if matcher not in selector["matchers"].split(","):
                yield f"{title}: {selector[0]}"


def _expressions(board: Dashboard) -> Iterator[tuple[str, str]]:
    for target in board.targets:
        if target.source == "prometheus":
            yield target.panel, target.text
