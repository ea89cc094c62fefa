"""Every query of every panel, annotation and variable, run for real: it returns data."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

import pytest

from memtrace_collector.store.postgres.cases import PostgresCaseStore
from tests.dashboards import grafana, sources
from tests.dashboards.choices import SQL, chosen, from_rows
from tests.dashboards.grafana import Target, Window
from tests.dashboards.sources import Monitored
from tests.postgres import Cluster

TARGETS = [target for each in grafana.dashboards() for target in each.targets]


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


@pytest.fixture(scope="module")
def empty(postgres_cluster: Cluster) -> str:
    """A store in which nothing was found yet."""
    url = postgres_cluster.new_database()
    PostgresCaseStore(url).close()
    return url


@pytest.mark.parametrize("target", [t for t in TARGETS if t.source == SQL], ids=str)
def test_a_store_without_failures_gives_no_rows_and_no_error(empty: str, target: Target) -> None:
    window = Window(0, time.time())
    ask = partial(sources.rows, empty)
    said = chosen(grafana.dashboard(target.dashboard), from_rows(ask, window))
    assert ask(grafana.sql(target.text, said, window)) == []


def test_what_the_windows_count_is_what_happened(
    monitored: Monitored, window: Window, values: dict[str, dict[str, Any]]
) -> None:
    """The demo's nine faults before the deploy and three others after it, where a person also
    confirmed one of those before."""
    panel = grafana.dashboard("memory-health").panel("This window against the one before")
    counts = [
        {
            (row["metric"]["stage"], row["metric"]["type"]): round(float(row["value"][1]))
            for row in monitored.query(
                grafana.promql(target["expr"], values["memory-health"], window), window.end
            )
            if float(row["value"][1]) > 0
        }
        for target in panel["targets"]
    ]
    now, before = counts
    assert now == {
        ("update", "merged_wrong"): 1,
        ("retrieval", "stale_retrieved"): 1,
        ("retrieval", "ranked_out"): 1,
        ("update", "overwritten"): 1,
    }
    assert len(before) == 9 and set(before.values()) == {1}


def test_an_exemplar_of_the_verdicts_leads_to_the_trace_of_a_case(
    monitored: Monitored, window: Window, values: dict[str, dict[str, Any]]
) -> None:
    (target,) = grafana.dashboard("failures").panel("Verdicts over time")["targets"]
    assert target["exemplar"] is True
    expression = grafana.promql(target["expr"], values["failures"], window)
    found = {
        exemplar["labels"]["trace_id"]
        for series in monitored.exemplars(expression)
        for exemplar in series["exemplars"]
    }
    cases = {r["case_trace"] for r in monitored.rows("SELECT * FROM memtrace_report.failure")}
    assert len(found & cases) >= 5
    assert len(found - cases) <= 1, "that of the revision before a person's"
