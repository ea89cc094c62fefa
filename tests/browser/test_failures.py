"""The list of failures in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from memtrace_collector.runtime.stores import CASES_FILE
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.queue import QueuedCase
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.browser import hostile as hostile_spans
from tests.browser.chromium import shown
from tests.browser.conftest import Explorer, Shoot, served

ADDRESS = "#/failures"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """Stores that nobody has sent anything to."""
    with (
        closing(SqliteCaseStore(tmp_path_factory.mktemp("empty") / CASES_FILE)) as cases,
        served(InMemoryFactStore(), cases) as url,
    ):
        yield Explorer(url)


@dataclass(frozen=True)
class Many:
    """A store of 120 verdicts without spans, and an answer that was set aside."""

    explorer: Explorer
    cases: SqliteCaseStore


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    with closing(SqliteCaseStore(tmp_path_factory.mktemp("many") / CASES_FILE)) as cases:
        for number in range(120):
            cases.save_verdict(verdict(number), [])
        cases.announce([QueuedCase("failed", "ab" * 16, "cd" * 8, "user:anna", 1)], (), None, 0)
        lease = cases.claim("failed", "worker", 0, 10)
        assert lease is not None and cases.fail(lease, "the rules fail", None)
        with served(InMemoryFactStore(), cases) as url:
            yield Many(Explorer(url), cases)


def verdict(number: int) -> dict[str, object]:
    return {
        "id": f"{number:032x}",
        "revision": 1,
        "created": f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00.000Z",
        "graph_id": "user:anna",
        "answer": {"traceId": f"{number + 1:032x}", "spanId": f"{number + 1:016x}"},
        "stage": "update",
        "error_type": "overwritten",
        "method": "rules",
        "score": 0.9,
        "explanation": f"Explanation {number}.",
        "decisive": [],
        "also": [],
        "alternatives": [],
        "evidence": [],
        "path": [],
        "basis": ["text"],
        "lineage": "complete",
        "absence": "proven",
        "missing": [],
        "aspect": None,
        "mechanism": None,
        "last_right": None,
        "first_wrong": None,
        "case_trace": None,
    }


def rows(page: Page) -> Locator:
    return page.locator("table.failures tbody tr")


def planted(explorer: Explorer) -> list[dict[str, Any]]:
    return [case for case in explorer.cases if case["planted"]]


def test_every_verdict_of_the_demo_is_listed_with_its_decisive_operation(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, ADDRESS)
    expect(page.get_by_role("status")).to_have_text(f"{len(explorer.cases)} verdicts")
    expect(rows(page)).to_have_count(len(explorer.cases))
    for case in planted(explorer):
        row = page.locator(f'tr[data-id="{case["verdict"]["id"]}"]')
        expect(row).to_contain_text(case["planted"]["error_type"].replace("_", " "))
        span = case["planted"]["operation"]
        link = row.locator("td a")
        expect(link).to_have_attribute("href", re.compile(f"{span['traceId']}.*{span['spanId']}"))


def test_filters_narrow_the_list_and_stand_in_the_address(page: Page, explorer: Explorer) -> None:
    explorer.open(page, ADDRESS)
    total = len(explorer.cases)
    updates = [case for case in planted(explorer) if case["planted"]["stage"] == "update"]
    page.get_by_label("Stage").select_option("update")
    expect(page.get_by_role("status")).to_have_text(f"{len(updates)} of {total} verdicts")
    expect(rows(page)).to_have_count(len(updates))
    page.get_by_label("Search").fill("overwritten by another fact")
    expect(page.get_by_role("status")).to_have_text(f"1 of {total} verdicts")
    assert page.evaluate("location.hash") == (
        "#/failures?q=overwritten+by+another+fact&stage=update"
    )
    page.reload()
    shown(page, page.evaluate("location.hash"))
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_label("Stage")).to_have_value("update")
    expect(page.get_by_label("Search")).to_have_value("overwritten by another fact")
    page.get_by_role("button", name="Clear").click()
    expect(rows(page)).to_have_count(total)
    assert page.evaluate("location.hash") == "#/failures"


def test_only_memory_s_faults_are_left_by_one_box(page: Page, explorer: Explorer) -> None:
    explorer.open(page, ADDRESS)
    page.get_by_label("Memory faults only").check()
    expect(rows(page)).to_have_count(len(planted(explorer)))
    offered = page.get_by_label("Stage").locator("option").all_text_contents()
    assert "update (2)" in offered and not any(text.startswith("not_memory") for text in offered)


def test_a_filter_that_nothing_passes_says_so_and_can_be_taken_back(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, "#/failures?q=nothing+says+this&type=overwritten")
    expect(page.locator("main")).to_contain_text("No failure passes these filters")
    page.get_by_role("button", name="Clear all filters").click()
    expect(rows(page)).to_have_count(len(explorer.cases))


def test_going_back_finds_the_filtered_list_and_the_row_that_was_left(
    page: Page, explorer: Explorer
) -> None:
    address = "#/failures?memory=yes"
    explorer.open(page, address)
    link = rows(page).nth(3).locator("th a")
    name = link.get_attribute("href")
    link.click()
    shown(page, str(name))
    page.go_back()
    shown(page, address)
    expect(page.locator(f'th a[href="{name}"]')).to_be_focused()


def test_all_failures_leads_back_to_the_list_as_it_was_filtered(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, ADDRESS)
    page.get_by_label("Memory faults only").check()
    expect(rows(page)).to_have_count(len(planted(explorer)))
    rows(page).first.locator("th a").click()
    page.locator("ol.way").first.wait_for()
    page.reload()
    page.get_by_role("link", name="All failures").click()
    shown(page, "#/failures?memory=yes")


def test_refreshing_keeps_filters_and_focus(page: Page, explorer: Explorer) -> None:
    explorer.open(page, "#/failures?memory=yes")
    before = rows(page).count()
    link = rows(page).nth(2).locator("th a")
    name = link.get_attribute("href")
    link.focus()
    with page.expect_response(re.compile("/view/failures")):
        page.evaluate("[...document.querySelectorAll('main button')]"
                      ".find((b) => b.textContent === 'Refresh').click()")  # fmt: skip
    expect(page.locator(f'th a[href="{name}"]')).to_be_focused()
    expect(rows(page)).to_have_count(before)


def test_a_long_list_is_shown_page_by_page_and_kept_on_the_way_back(page: Page, many: Many) -> None:
    many.explorer.open(page, ADDRESS)
    expect(page.get_by_role("status")).to_have_text("120 verdicts")
    expect(rows(page)).to_have_count(50)
    page.get_by_role("button", name="Show more").click()
    expect(rows(page)).to_have_count(100)
    link = rows(page).nth(80).locator("th a")
    name = str(link.get_attribute("href"))
    link.click()
    shown(page, name)
    page.go_back()
    expect(rows(page)).to_have_count(100)
    expect(page.locator(f'th a[href="{name}"]')).to_be_focused()
    page.get_by_role("button", name="Show more").click()
    expect(rows(page)).to_have_count(120)
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()


def test_a_refresh_brings_newer_verdicts_and_leaves_the_row_in_view_where_it_is(
    page: Page, many: Many
) -> None:
    many.explorer.open(page, ADDRESS)
    row = rows(page).nth(30)
    name = row.get_attribute("data-id")
    row.scroll_into_view_if_needed()
    page.evaluate("document.querySelectorAll('table.failures tr')[20].scrollIntoView()")
    looked_at = page.locator(f'tr[data-id="{name}"]')
    before = looked_at.bounding_box()
    many.cases.save_verdict(verdict(121), [])
    page.evaluate("[...document.querySelectorAll('main button')]"
                  ".find((button) => button.textContent === 'Refresh').click()")  # fmt: skip
    expect(page.get_by_role("status")).to_have_text("121 verdicts")
    expect(rows(page).first).to_contain_text("Explanation 121.")
    after = looked_at.bounding_box()
    assert before is not None and after is not None
    assert abs(before["y"] - after["y"]) < 2


def test_what_could_not_be_judged_is_listed_with_the_reason(
    page: Page, many: Many, axe: Callable[[Page], None]
) -> None:
    many.explorer.open(page, "#/failures?stage=ingest")
    details = page.locator("details.unjudged")
    expect(details.locator("summary")).to_have_text("Not judged: 1 set aside")
    expect(details).to_contain_text("the rules fail")
    axe(page)


def test_a_store_without_failures_says_what_to_do(
    page: Page, empty: Explorer, readable: Shoot
) -> None:
    empty.open(page, ADDRESS)
    expect(page.locator("main")).to_contain_text("No answer has been flagged yet")
    expect(page.locator("main")).to_contain_text("memtrace-otel flag TRACE:SPAN")
    readable(page, "failures empty")


def test_hostile_names_are_listed_as_text(page: Page, hostile: Explorer) -> None:
    hostile.open(page, ADDRESS)
    expect(rows(page).first).to_contain_text(hostile_spans.GRAPH)
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "Failures · memtrace"
    page.get_by_label("Graph").select_option(hostile_spans.GRAPH)
    expect(rows(page)).to_have_count(1)
