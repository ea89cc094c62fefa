"""Links of rows and nodes lead to the spans and cases that the rows are about."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.dashboards import grafana
from tests.dashboards.grafana import Dashboard, Window
from tests.dashboards.sources import Monitored

BOARD = grafana.dashboard("failures")
JAEGER, EXPLORER = "http://localhost:16686", "http://localhost:4319"
NOW = Window(1_000, 2_000)


@pytest.fixture(scope="module")
def chosen(values: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return values["failures"]


def rows_of(
    monitored: Monitored, title: str, chosen: dict[str, Any], window: Window
) -> list[dict[str, Any]]:
    target = BOARD.panel(title)["targets"][0]
    return monitored.rows(grafana.sql(target["rawSql"], chosen, window))


def links_of(board: Dashboard, title: str, row: dict[str, Any]) -> dict[str, str]:
    """The URLs of a row, by column."""
    values = {**board.constants, "tenant": "default"}
    return {column: url for column, _, url in grafana.links(board.panel(title), row, values, NOW)}


def test_a_failure_leads_to_operation_answer_case_and_explorer(
    monitored: Monitored, window: Window, chosen: dict[str, Any]
) -> None:
    rows = rows_of(monitored, "Latest failures", chosen, window)
    found = {row["error_type"]: links_of(BOARD, "Latest failures", row) for row in rows}
    verdicts = monitored.serving.ask("/verdicts")
    for verdict in verdicts:
        links = found.get(verdict["error_type"], {})
        answer = verdict["answer"]
        if not links or answer["traceId"] not in links["answer_trace"]:
            continue
        assert links["answer_trace"] == (
            f"{JAEGER}/trace/{answer['traceId']}?uiFind={answer['spanId']}"
        )
        (decisive, *_) = verdict["decisive"]
        assert links["decisive_operation"] == (
            f"{JAEGER}/trace/{decisive['traceId']}?uiFind={decisive['spanId']}"
        )
    assert set(found) >= {"merged_wrong", "stale_retrieved", "ranked_out"}


def test_the_explorer_knows_the_case_that_a_row_leads_to(
    monitored: Monitored, window: Window, chosen: dict[str, Any]
) -> None:
    (row, *_) = rows_of(monitored, "Latest failures", chosen, window)
    url = links_of(BOARD, "Latest failures", row)["case_id"]
    start, _, case_id = url.rpartition("/#/failure/")
    assert (start, case_id) == (EXPLORER, row["case_id"])
    shown = httpx.get(
        f"{monitored.serving.addresses['api']}/api/v1/view/failure", params={"id": case_id}
    )
    assert shown.status_code == 200


def test_a_click_on_the_stage_chooses_the_case_on_the_same_page(
    monitored: Monitored, window: Window, chosen: dict[str, Any]
) -> None:
    (row, *_) = rows_of(monitored, "Latest failures", chosen, window)
    assert links_of(BOARD, "Latest failures", row)["stage"] == (
        f"/d/{BOARD.json['uid']}?from=1000000&to=2000000&var-tenant=default"
        f"&var-case={row['case_id']}"
    )


def test_the_nodes_of_a_case_have_one_decisive_operation_and_are_joined_by_its_edges(
    monitored: Monitored, window: Window, chosen: dict[str, Any]
) -> None:
    nodes, edges = (
        monitored.rows(grafana.sql(target["rawSql"], chosen, window))
        for target in BOARD.panel("Evolution of the case")["targets"]
    )
    ids = {node["id"] for node in nodes}
    assert {edge[end] for edge in edges for end in ("source", "target")} <= ids
    assert ids - {edge["target"] for edge in edges} == {"1"}, "all but the first are reached"
    (decisive,) = [node for node in nodes if node["mainstat"].startswith("DECISIVE")]
    assert decisive["color"] == "red"
    (case,) = monitored.rows(
        "SELECT decisive_trace, decisive_span FROM memtrace_report.failure"
        f" WHERE case_id = '{chosen['case']}'"
    )
    (url, explorer) = [
        link
        for _, _, link in grafana.links(
            BOARD.panel("Evolution of the case"), decisive, BOARD.constants, NOW
        )
    ]
    assert url == f"{JAEGER}/trace/{case['decisive_trace']}?uiFind={case['decisive_span']}"
    assert explorer.endswith(f"/#/operation/{case['decisive_trace']}:{case['decisive_span']}")


def test_what_cells_say_is_encoded_in_a_link() -> None:
    row = {"service": "a&b=c#d/e f", "failures": 1}
    links = links_of(BOARD, "Failing services", row)
    assert links["service"] == f"{EXPLORER}/#/failures?service=a%26b%3Dc%23d%2Fe%20f"


def test_an_empty_cell_has_no_link() -> None:
    row = dict.fromkeys(("decisive_operation", "decisive_trace", "decisive_span"), None)
    assert "decisive_operation" not in links_of(BOARD, "Latest failures", row)
