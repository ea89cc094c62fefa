"""The page of a server that asks who is calling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import shown, watched_page
from tests.browser.conftest import Explorer, Shoot
from tests.memtrace_collector.access.tokens import ACME, EXPIRED, GLOBEX, bearer, tokens_file
from tests.memtrace_collector.running import VECTORS, eventually, start_up

GRAPH = "user:overwritten"
pytestmark = pytest.mark.fault("F32")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """An `up` with two tenants; acme has a verdict."""
    folder = tmp_path_factory.mktemp("guarded")
    up = start_up(folder / "store", "--tokens-file", str(tokens_file(folder)))
    try:
        sent = httpx.post(
            f"{up.addresses['otlp_http']}/v1/traces",
            content=(VECTORS / "overwritten.otlp.json").read_bytes(),
            headers={"content-type": "application/json", **bearer(ACME)},
            timeout=20,
        )
        sent.raise_for_status()
        verdicts = f"{up.addresses['api']}/api/v1/verdicts"
        eventually(
            lambda: bool(httpx.get(verdicts, headers=bearer(ACME), timeout=20).json()), "a verdict"
        )
        yield Explorer(up.addresses["api"])
    finally:
        up.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """That the server refuses is part of what is tested here, and stands on the console."""
    with watched_page(browser, may_fail=re.compile("401|403")) as found:
        yield found


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_the_page_asks_for_the_token_and_shows_the_tenant_s_own(
    page: Page, guarded: Explorer, axe: Callable[[Page], None], screenshot: Shoot
) -> None:
    page.goto(f"{guarded.url}/#/failures")
    dialog = page.get_by_role("dialog", name="Sign in")
    expect(dialog).to_be_visible()
    assert GRAPH not in page.content()
    axe(page)
    screenshot(page, "door")
    for wrong in ("no-such-token", EXPIRED):
        sign_in(page, wrong)
        expect(dialog.get_by_role("alert")).to_contain_text("not known here")
    sign_in(page, ACME)
    shown(page, "#/failures")
    expect(page.locator("main")).to_contain_text(GRAPH)
    expect(page.locator("header")).to_contain_text("acme")


def test_the_token_stays_in_this_tab_and_signing_out_forgets_it(
    page: Page, guarded: Explorer
) -> None:
    page.goto(f"{guarded.url}/#/failures")
    sign_in(page, GLOBEX)
    shown(page, "#/failures")
    expect(page.locator("main")).not_to_contain_text(GRAPH)
    assert GLOBEX not in page.evaluate("() => JSON.stringify(localStorage) + document.cookie")
    page.reload()
    shown(page, "#/failures")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()
    assert page.evaluate("() => JSON.stringify(sessionStorage)") == "{}"


def test_what_is_served_before_the_door_holds_no_data(guarded: Explorer) -> None:
    page = httpx.get(f"{guarded.url}/").text
    scripts = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
    assert scripts
    for path in scripts:
        assert httpx.get(f"{guarded.url}{path}").status_code == 200
    assert httpx.get(f"{guarded.url}/api/v1/view/graphs").status_code == 401
