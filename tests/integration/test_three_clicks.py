"""From a list of failures to the decisive operation and its evidence, by following real URLs.

The installation is the compose file's, filled by the demo. Grafana's and Jaeger's own pages do not
run here: the links that they would show are made from their configuration and from what the real
servers behind them answer. Every URL is opened: in Jaeger's API, or in a browser at the explorer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from memtrace_collector.demo.cases import questions
from tests import jaeger_ui
from tests.browser.chromium import shown, span_text, watched_page
from tests.dashboards import grafana
from tests.dashboards.choices import chosen, from_rows
from tests.demo_run import DemoRun
from tests.integration.installation import Installation
from tests.integration.servers import eventually, get

BOARD = grafana.dashboard("failures")
LATEST = "Latest failures"
MAX_CLICKS = 3
PLANTED = [question.id for question in questions() if question.planted]

pytestmark = pytest.mark.usefixtures("installed_demo")


@pytest.fixture(scope="module")
def reader(browser: Browser) -> Iterator[Page]:
    """One person's browser for all of it."""
    with watched_page(browser) as page:
        yield page


def _case(demo: DemoRun, name: str) -> dict[str, Any]:
    return next(case for case in demo.cases if case["id"] == name)


def _grafana_row(installation: Installation, case: dict[str, Any]) -> dict[str, str]:
    """URLs of the row of this failure, by column, as the dashboard shows it."""
    window = grafana.Window(time.time() - 3_600, time.time() + 60)
    choices = chosen(BOARD, from_rows(installation.report, window))
    panel = BOARD.panel(LATEST)
    rows = installation.report(grafana.sql(panel["targets"][0]["rawSql"], choices, window))
    (row,) = [row for row in rows if row["answer_span"] == case["answer"]["spanId"]]
    return {column: url for column, _, url in grafana.links(panel, row, choices, window)}


def _opened_in_jaeger(installation: Installation, url: str) -> dict[str, Any]:
    """The span that Jaeger would show at this address."""
    parts = urlsplit(url)
    (span_id,) = parse_qs(parts.query)["uiFind"]
    trace_id = parts.path.removeprefix("/trace/")
    found = eventually(lambda: installation.jaeger.span(trace_id, span_id), url)
    return {"traceId": trace_id, "spanId": found["spanID"]}


def _open_in_explorer(installation: Installation, page: Page, url: str) -> None:
    parts = urlsplit(url)
    page.goto(f"{installation.stack.url('serve', 4319)}/#{parts.fragment}")
    shown(page, f"#{parts.fragment}")


def _expect_the_failure(page: Page, case: dict[str, Any]) -> None:
    """The page shows the decisive operation as such, and the message that was the evidence."""
    decisive = page.locator("li.hop.decisive")
    expect(decisive).to_have_count(1)
    expect(decisive).to_contain_text(span_text(case["planted"]["operation"]))
    evidence = page.locator('li.hop[data-kind="evidence"]')
    expect(evidence.first).to_be_visible()


@pytest.mark.parametrize("name", PLANTED)
def test_a_row_of_grafana_leads_to_operation_and_evidence_in_the_explorer_by_one_click(
    installation: Installation, installed_demo: DemoRun, reader: Page, name: str
) -> None:
    case = _case(installed_demo, name)
    url = _grafana_row(installation, case)["case_id"]
    _open_in_explorer(installation, reader, url)
    _expect_the_failure(reader, case)


@pytest.mark.parametrize("name", PLANTED)
def test_a_row_of_grafana_leads_to_the_decisive_span_in_jaeger_by_one_click(
    installation: Installation, installed_demo: DemoRun, name: str
) -> None:
    case = _case(installed_demo, name)
    url = _grafana_row(installation, case)["decisive_operation"]
    assert _opened_in_jaeger(installation, url) == case["planted"]["operation"]


@pytest.mark.parametrize("name", PLANTED)
def test_a_search_in_jaeger_leads_to_operation_and_evidence_by_three_clicks(
    installation: Installation, installed_demo: DemoRun, reader: Page, name: str
) -> None:
    case = _case(installed_demo, name)
    clicks = 0
    now_us = int(time.time() * 1e6)
    response = get(
        f"{installation.jaeger.query}/api/traces",
        service="memtrace",
        tags=json.dumps({"memtrace.attribution.type": case["planted"]["error_type"]}),
        start=str(now_us - 3_600_000_000),
        end=str(now_us + 60_000_000),
        limit="100",
    )
    assert response is not None
    clicks += 1  # the trace of the case, among those found
    (trace,) = [
        trace
        for trace in response.json()["data"]
        if trace["traceID"] == case["verdict"]["case_trace"]
    ]
    (root,) = [span for span in trace["spans"] if span["operationName"] == "memtrace.case"]
    links = {link.key: link.url for link in jaeger_ui.links(trace, root)}
    clicks += 1  # the value of a tag
    assert (
        _opened_in_jaeger(installation, links["memtrace.cause.trace_id"])
        == (case["planted"]["operation"])
    )
    _open_in_explorer(installation, reader, links["memtrace.case.id"])
    _expect_the_failure(reader, case)
    clicks += 1  # from the decisive hop to the operation itself
    reader.locator("li.hop.decisive").get_by_role("link", name="the operation").click()
    reader.wait_for_url(f"**/#/operation/{case['planted']['operation']['traceId']}*")
    expect(reader.locator("main")).to_contain_text(case["planted"]["operation"]["spanId"])
    assert clicks <= MAX_CLICKS


@pytest.mark.parametrize("name", PLANTED)
def test_from_the_explorer_one_click_shows_the_span_in_jaeger(
    installation: Installation, installed_demo: DemoRun, reader: Page, name: str
) -> None:
    case = _case(installed_demo, name)
    fragment = f"/failure/{case['verdict']['id']}"
    _open_in_explorer(installation, reader, f"http://localhost:4319/#{fragment}")
    link = reader.locator("li.hop.decisive").get_by_role("link", name="in Jaeger").first
    url = link.get_attribute("href")
    assert url is not None
    assert _opened_in_jaeger(installation, url) == case["planted"]["operation"]
