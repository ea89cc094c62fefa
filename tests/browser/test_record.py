"""A record's life on the page: a change is read, a reader's rank, the answer that it broke."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from memtrace_collector.runtime.stores import CASES_FILE
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.browser.chromium import shown, span_text
from tests.browser.conftest import Explorer, served
from tests.memtrace_collector.attribution.scripts import Script


def address_of(graph_id: str, record: str) -> str:
    return f"#/record/{quote(graph_id, safe='')}/{quote(record, safe='')}"


def opened(page: Page, explorer: Explorer, case: str, ref: str = "last_right") -> dict[str, Any]:
    """Open the life of the record that a demo case's verdict names; the verdict."""
    verdict: dict[str, Any] = explorer.case(case)["verdict"]
    explorer.open(page, address_of(verdict["graph_id"], verdict[ref].partition("@")[0]))
    return verdict


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """A record of 1,500 characters."""
    script = Script()
    script.remember("word " * 300)
    with (
        closing(SqliteCaseStore(tmp_path_factory.mktemp("long") / CASES_FILE)) as cases,
        served(script.store(), cases) as url,
    ):
        yield Explorer(url)


def test_a_change_is_read_word_by_word_with_who_wrote_it_and_what_it_broke(
    page: Page, explorer: Explorer
) -> None:
    verdict = opened(page, explorer, "start-weight")
    second = page.get_by_role("article", name="v2")
    expect(second.locator("del")).to_contain_text("75kg")
    expect(second.locator("ins")).to_contain_text("69kg")
    expect(second).to_contain_text("changed")
    expect(second).to_contain_text("UPDATE")
    expect(second.locator("blockquote").first).to_contain_text("stuck at 69kg")
    operation = second.get_by_role("link", name="memtrace.decide")
    assert span_text(verdict["decisive"][0]) in (operation.get_attribute("href") or "").replace(
        "%3A", ":"
    )
    second.get_by_role("link", name="broke an answer").click()
    shown(page, f"#/failure/{verdict['id']}")


def test_a_readers_rank_and_score_are_those_of_the_receipt(page: Page, explorer: Explorer) -> None:
    verdict = opened(page, explorer, "start-weight")
    record = verdict["last_right"].partition("@")[0]
    receipt = explorer.ask("/why", answer=span_text(verdict["answer"]))
    read, candidate = next(
        (read, each)
        for read in receipt["reads"]
        for each in read["candidates"]
        if each["ref"].startswith(record)
    )
    row = (
        page.get_by_role("region", name="Who read it")
        .get_by_role("row")
        .filter(has=page.locator(f'a[href*="{read["span"]["spanId"]}"]'))
    )
    returned = sum(not each["outcome"].startswith("cut") for each in read["candidates"])
    expect(row).to_contain_text(f"{candidate['rank']} of {returned}")
    expect(row).to_contain_text(f"{candidate['score']:.3f}")
    expect(row).to_contain_text("v2")


def test_the_readers_are_turned_over_by_keyboard_and_the_address_keeps_the_place(
    page: Page, explorer: Explorer
) -> None:
    opened(page, explorer, "start-weight")
    reads = page.get_by_role("region", name="Who read it")
    expect(reads).to_contain_text("1 to 15 of")
    reads.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    expect(reads).to_contain_text("16 to ")
    expect(reads.get_by_role("heading")).to_be_focused()
    assert "reads=15" in page.url
    page.reload()
    expect(page.get_by_role("region", name="Who read it")).to_contain_text("16 to ")


def test_a_deletion_shows_what_is_gone_and_the_answer_that_missed_it(
    page: Page, explorer: Explorer
) -> None:
    opened(page, explorer, "work-hours")
    gone = page.get_by_role("article", name="v2")
    expect(gone.locator("del")).to_contain_text("9 AM to 6 PM")
    expect(gone).to_contain_text("deleted")
    missed = page.get_by_role("region", name="Answers it bears on").get_by_role("row").last
    expect(missed).to_contain_text("deletion / wrongly_deleted")
    expect(missed).to_contain_text("not in its prompt")


def test_the_time_line_says_in_words_what_it_draws(page: Page, explorer: Explorer) -> None:
    opened(page, explorer, "start-weight")
    drawing = page.locator("svg.time-line")
    label = drawing.get_attribute("aria-label") or ""
    assert label.startswith("2 writes, ") and "answers, from 20" in label
    assert drawing.locator(".written rect").count() == 2


def test_a_long_text_is_folded_until_it_is_wanted_whole(page: Page, long: Explorer) -> None:
    long.open(page, address_of("user:test", "mem:stub:1"))
    text = page.get_by_role("article", name="v1").locator(".captured")
    button = page.get_by_role("button", name="Show all 1,500 characters")
    expect(button).to_have_attribute("aria-expanded", "false")
    folded = text.bounding_box()
    button.click()
    whole = text.bounding_box()
    assert folded is not None and whole is not None and whole["height"] > folded["height"] + 20
    less = page.get_by_role("button", name="Show less")
    expect(less).to_have_attribute("aria-expanded", "true")
    less.click()
    assert text.bounding_box() == folded


def test_hostile_texts_stay_text(page: Page, hostile: Explorer) -> None:
    (verdict,) = hostile.ask("/verdicts")
    hostile.open(page, address_of(verdict["graph_id"], verdict["last_right"].partition("@")[0]))
    expect(page.get_by_role("article", name="v1").locator(".captured")).to_contain_text(
        "<img src=x onerror="
    )
    assert page.locator("main img, main script").count() == 0
    assert page.title() != "pwned"
