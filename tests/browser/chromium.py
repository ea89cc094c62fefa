"""Chromium, and a page of it that is watched for anything that goes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from tests import components

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LAPTOP = {"width": 1440, "height": 900}
TIMEOUT_MS = 15_000
Theme = Literal["light", "dark"]


@contextmanager
def launched() -> Iterator[Browser]:
    """Skips (or fails) where there is no Chromium."""
    path = components.chromium()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield found
        found.close()


def shown(page: Page, address: str) -> None:
    """Wait until the view at ``#/…`` is shown (and not the one before it)."""
    quoted = address.replace("\\", "\\\\").replace('"', '\\"')
    page.locator(f'main[data-shown="{quoted}"]').wait_for()


def span_text(span: dict[str, str]) -> str:
    """``TRACE:SPAN``."""
    return f"{span['traceId']}:{span['spanId']}"


@contextmanager
def watched_page(
    browser: Browser, theme: Theme = "light", may_fail: re.Pattern[str] | None = None
) -> Iterator[Page]:
    """A page in a context of its own; on leaving, nothing may have gone wrong in it but what
    ``may_fail`` finds on the console."""
    context = browser.new_context(viewport=LAPTOP, color_scheme=theme, reduced_motion="reduce")
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    wrong: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        expected = may_fail is not None and may_fail.search(message.text)
        if message.type in ("error", "warning") and not expected:
            wrong.append(f"console: {message.text}")

    def on_request(request: Request) -> None:
        asked = urlsplit(request.url)
        if asked.scheme not in ("data", "blob") and asked.hostname != "127.0.0.1":
            wrong.append(f"asked another host: {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", on_request)
    try:
        yield page
    finally:
        context.close()
    assert wrong == []
