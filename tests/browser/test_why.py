"""The receipt of an answer on the page, and why something was recalled for it or was not."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import span_text
from tests.browser.conftest import Explorer


def receipt_of(explorer: Explorer, case: str) -> str:
    answer = explorer.case(case)["verdict"]["answer"]
    return f"#/why/{span_text(answer)}"


def test_an_answer_is_chosen_and_asked_about_by_keyboard_alone(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, "#/why")
    question = page.get_by_role("link", name="What were the user's weight in kg")
    for _ in range(20):
        page.keyboard.press("j")
        if question.evaluate("link => link === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Why this answer")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Why was this recalled, or not?")).to_be_focused()
    page.keyboard.type("75kg")
    page.keyboard.press("Enter")
    told = page.get_by_role("article")
    expect(told).to_contain_text("stored once, replaced since")
    expect(told).to_contain_text("What was asked about is the text of v1")
    expect(told).to_contain_text("at rank 1 of 5")
    assert "about=75kg" in page.url
    page.reload()
    expect(page.get_by_role("article")).to_contain_text("stored once, replaced since")


@pytest.mark.parametrize(
    ("case", "about", "outcome", "says"),
    [
        ("flight-budget", "6000-8000 RMB", "recalled", "it went into the prompt"),
        ("airlines", "China Southern Airlines", "stored, not considered", "did not consider it"),
        ("work-hours", "9 AM to 6 PM", "deleted before", "It had been deleted before this answer"),
        ("office-snack", "afternoon tea", "said, not stored in these words", "It entered"),
        ("office-snack", "purple zeppelin", "", "Nothing that was recorded"),
    ],
)
def test_each_way_of_missing_it_is_told_in_words(
    page: Page, explorer: Explorer, case: str, about: str, outcome: str, says: str
) -> None:
    explorer.open(page, receipt_of(explorer, case))
    page.get_by_label("Why was this recalled, or not?").fill(about)
    page.get_by_role("button", name="Ask").click()
    told = page.locator("#told")
    expect(told).to_contain_text(outcome)
    expect(told).to_contain_text(says)


def test_the_receipt_shows_every_candidate_with_rank_score_and_fate(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, receipt_of(explorer, "start-weight"))
    asked = explorer.ask("/why", answer=receipt_of(explorer, "start-weight")[len("#/why/") :])
    candidates = [each for read in asked["reads"] for each in read["candidates"]]
    rows = page.locator("table.considered tbody tr")
    expect(rows).to_have_count(len(candidates))
    for row, candidate in zip(rows.all(), candidates, strict=True):
        expect(row.locator("td").first).to_have_text(str(candidate["rank"]))
        expect(row).to_contain_text(f"{candidate['score']:.3f}")
        expect(row).to_contain_text(candidate["ref"].partition("@")[0])
    expect(rows.first).to_contain_text("in the prompt")
    rows.first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Record")).to_be_visible()


def test_hostile_texts_stay_text(page: Page, hostile: Explorer) -> None:
    (verdict,) = hostile.ask("/verdicts")
    hostile.open(page, f"#/why/{span_text(verdict['answer'])}?about=%3Cimg%20src%3Dx%3E")
    expect(page.locator("main")).to_contain_text("<img src=x onerror=")
    assert page.locator("main img, main script").count() == 0
    assert page.title() != "pwned"
