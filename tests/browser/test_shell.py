"""What every view of the page has in common."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.chromium import shown, watched_page
from tests.browser.conftest import Explorer, running

NARROW = {"width": 1000, "height": 500}


def is_dark(page: Page) -> bool:
    color = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", color)[:3])) < 3 * 128


def test_a_new_view_has_the_focus_on_its_heading_and_names_the_page(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, "#/failures")
    navigation = page.get_by_role("navigation", name="Views")
    for name in ("Graphs", "Failures"):
        navigation.get_by_role("link", name=name).click()
        shown(page, f"#/{name.lower()}")
        expect(page.get_by_role("heading", level=2).first).to_be_focused()
        expect(page).to_have_title(re.compile(f"^{name}.* · memtrace$"))
        expect(navigation.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")


def test_going_back_finds_the_place_that_was_left(page: Page, explorer: Explorer) -> None:
    page.set_viewport_size(NARROW)
    explorer.open(page, "#/failures")
    verdict = explorer.case("departure-city")["verdict"]
    link = page.locator(f"a[href='#/failure/{verdict['id']}']").first
    link.scroll_into_view_if_needed()
    page.evaluate("() => scrollBy(0, 200)")
    before = page.evaluate("() => scrollY")
    link.click()
    shown(page, f"#/failure/{verdict['id']}")
    assert page.evaluate("() => scrollY") == 0
    page.go_back()
    shown(page, "#/failures")
    assert before > 0 and abs(page.evaluate("() => scrollY") - before) <= 2
    expect(link).to_be_focused()


def test_the_theme_follows_the_system_until_one_is_chosen_and_remembered(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, "#/failures")
    assert not is_dark(page)
    page.emulate_media(color_scheme="dark")
    assert is_dark(page)
    button = page.get_by_role("button", name="Theme")
    for theme in ("light", "dark"):
        button.click()
        expect(button).to_have_text(f"Theme: {theme}")
        assert is_dark(page) == (theme == "dark")
    page.reload()
    shown(page, "#/failures")
    expect(button).to_have_text("Theme: dark")
    assert is_dark(page)


def test_everything_can_be_reached_by_keys(page: Page, explorer: Explorer) -> None:
    explorer.open(page, "#/graphs")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("j?")
    expect(page.get_by_role("searchbox")).to_have_value("j?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).not_to_be_focused()
    rows = page.locator("main tbody tr")
    page.keyboard.press("j")
    expect(rows.nth(0).get_by_role("link").first).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1).get_by_role("link").first).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("next, previous row")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/graphs?graph=*")
    shown(page, page.evaluate("location.hash"))
    page.locator("body").press("Home")
    page.keyboard.press("Tab")
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert "#/graphs" in page.url


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("#/failure/none", "Not found"),
        ("#/operation/12", "could not be shown"),
        ("#/nothing", "no view named nothing"),
        ("#/graph/%E0%A4%A", "could not be shown"),
    ],
)
def test_what_cannot_be_shown_is_said_with_a_way_on(
    browser: Browser, explorer: Explorer, address: str, says: str
) -> None:
    with watched_page(browser, may_fail=re.compile("40[04]")) as page:
        explorer.open(page, address)
        expect(page.get_by_role("main")).to_contain_text(says)
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_role("main").get_by_role("link", name="All failures").click()
        shown(page, "#/failures")


def test_a_server_that_is_gone_is_said_and_asked_again(browser: Browser, tmp_path: Path) -> None:
    with (
        running(tmp_path / "store") as up,
        watched_page(browser, may_fail=re.compile("ERR_|Failed to fetch")) as page,
    ):
        explorer = Explorer(up.addresses["api"])
        explorer.open(page, "#/failures")
        page.route("**/api/**", lambda route: route.abort())
        page.get_by_role("link", name="Graphs").click()
        expect(page.get_by_role("alert")).to_have_text("The server does not answer.")
        page.unroute("**/api/**")
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("main")).to_contain_text("No memory operation has arrived yet.")


def test_an_older_view_never_overtakes_a_newer_one(page: Page, explorer: Explorer) -> None:
    explorer.open(page, "#/failures")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/view/graphs*", hold)
    with page.expect_request("**/view/graphs*"):
        page.get_by_role("link", name="Graphs").click()
    page.get_by_role("link", name="Failures").click()
    shown(page, "#/failures")
    assert held
    with page.expect_response("**/view/graphs*"):
        for route in held:
            route.continue_()
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    expect(page.get_by_role("heading", level=2).first).to_have_text("Failures")
    shown(page, "#/failures")
