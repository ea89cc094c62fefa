"""What was found without a flag, on the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Page, expect

from memtrace_collector.runtime.stores import CASES_FILE
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.browser.conftest import Explorer, Shoot, served
from tests.contract import scenarios


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """Graphs in which a version was delivered after it was replaced, a search found nothing, and
    a value came back."""
    names = ("stale_retrieved", "not_stored", "flapped")
    facts = InMemoryFactStore.of(item for name in names for item in scenarios.facts(name))
    with (
        closing(SqliteCaseStore(tmp_path_factory.mktemp("broken") / CASES_FILE)) as cases,
        served(facts, cases) as url,
    ):
        yield Explorer(url)


def test_each_finding_leads_to_its_record_and_operation(page: Page, broken: Explorer) -> None:
    broken.open(page, "#/invariants")
    asked = broken.ask("/invariants")
    rows = page.get_by_role("region", name="Found").get_by_role("row")
    expect(rows).to_have_count(len(asked) + 1)
    (stale,) = (each for each in asked if each["kind"] == "stale")
    row = rows.filter(has_text="stale")
    expect(row).to_contain_text("User lives in Lisbon")
    operation = row.get_by_role("link", name="search_memory").get_attribute("href") or ""
    assert stale["span"]["spanId"] in operation
    row.get_by_role("link", name=stale["ref"].partition("@")[0]).click()
    expect(page.get_by_role("heading", name="Record")).to_be_visible()
    expect(page.get_by_role("region", name="Invariants that it broke")).to_contain_text("stale")


def test_a_kind_is_chosen_by_keyboard_and_kept_in_the_address(page: Page, broken: Explorer) -> None:
    broken.open(page, "#/invariants")
    page.get_by_role("link", name="flapping").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Found: flapping (1)")).to_be_visible()
    assert "kind=flapping" in page.url
    page.get_by_label("Graph").select_option("user:not_stored")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("region", name="Found: flapping")).to_contain_text("Nothing of this")


def test_nothing_found_is_said_plainly(page: Page, explorer: Explorer) -> None:
    explorer.open(page, "#/invariants")
    assert explorer.ask("/invariants") == []
    expect(page.get_by_role("region", name="Found")).to_contain_text("Nothing was found")


def test_broken_invariants_are_readable_in_both_themes(
    page: Page, broken: Explorer, readable: Shoot
) -> None:
    broken.open(page, "#/invariants")
    readable(page, "invariants broken")
