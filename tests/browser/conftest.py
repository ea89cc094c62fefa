"""The page in a real browser, over a real `memtrace-otel up`.

A test asks for ``page`` and ``explorer`` (the demo's graphs and verdicts) or ``hostile`` (one
failure whose every text looks like code). An error on the console, a violation of the content
security policy or a request to another host fails the test that caused it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from memtrace_collector.api import server
from memtrace_collector.api.listening import ApiServer
from memtrace_collector.api.service import Service, Work
from memtrace_collector.store.base import CaseStore, FactStore
from memtrace_collector.telemetry.telemetry import Telemetry
from tests.browser import hostile as hostile_spans
from tests.browser.chromium import launched, shown, watched_page
from tests.demo_run import DemoRun
from tests.memtrace_collector.running import Up, eventually, start_up

TRACE_URL = "http://localhost:16686/trace/{trace_id}?uiFind={span_id}"
OPEN_ALL = "document.querySelectorAll('main details').forEach((each) => { each.open = true; })"
Shoot = Callable[[Page, str], None]
Check = Callable[[Page], None]


@dataclass(frozen=True)
class Explorer:
    """A running `up` with its page."""

    url: str
    cases: list[dict[str, Any]] = field(default_factory=list)
    """What the demo wrote of each of its answers."""

    def ask(self, path: str, **parameters: str) -> Any:
        """The answer of the API at ``/api/v1`` + path."""
        response = httpx.get(
            f"{self.url}/api/v1{path}", params=parameters, timeout=20, trust_env=False
        )
        response.raise_for_status()
        return response.json()

    def case(self, case_id: str) -> dict[str, Any]:
        """The demo's case of that name, such as ``flight-budget``."""
        return next(case for case in self.cases if case["id"] == case_id)

    def open(self, page: Page, address: str) -> None:
        """Go to ``#/…`` and wait until its view is shown."""
        page.goto(f"{self.url}/{address}")
        shown(page, address)


@contextmanager
def running(store: Path) -> Iterator[Up]:
    """`up` over a folder, forwarding nowhere; with links to a Jaeger that does not run."""
    up = start_up(store, MEMTRACE_TRACE_URL=TRACE_URL)
    try:
        yield up
    finally:
        up.stop()


@contextmanager
def served(facts: FactStore, cases: CaseStore) -> Iterator[str]:
    """The address of the page over two stores, in this process: nothing can be written."""
    service = Service(facts, cases, Work(**{part.name: _refuse for part in fields(Work)}))
    with closing(Telemetry("test")) as telemetry:
        app = server.build(
            *(lambda _: service, telemetry, lambda: ""),
            host="127.0.0.1", max_request_bytes=1 << 20, trace_url=TRACE_URL,
        )  # fmt: skip
        running = ApiServer(app, "127.0.0.1", 0)
        running.start()
        try:
            yield "http://{}:{}".format(*running.address)
        finally:
            running.stop()


def _refuse(*_: object) -> Any:
    raise AssertionError("nothing is written here")


@pytest.fixture(scope="session")
def explorer(demo: DemoRun, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """The demo's graphs and verdicts, in a folder of their own: a test may add to them."""
    store = tmp_path_factory.mktemp("explorer") / "demo"
    shutil.copytree(demo.store, store)
    with running(store) as up:
        yield Explorer(up.addresses["api"], demo.cases)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """A failure whose captured texts and names look like code (``tests/browser/hostile.py``)."""
    with running(tmp_path_factory.mktemp("hostile") / "store") as up:
        up.post(hostile_spans.export_request())
        eventually(lambda: bool(up.ask("/verdicts")), "a verdict on the hostile answer")
        yield Explorer(up.addresses["api"])


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A laptop's browser in the light theme."""
    with watched_page(browser) as found:
        yield found


@pytest.fixture(scope="session")
def screenshot(tmp_path_factory: pytest.TempPathFactory) -> Shoot:
    """``screenshot(page, name)``: a PNG of the whole page in the folder that
    MEMTRACE_SCREENSHOTS names, named after the theme as well."""
    named = os.environ.get("MEMTRACE_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)

    def shoot(page: Page, name: str) -> None:
        dark = page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")
        file = f"{re.sub('[^a-z0-9]+', '-', name.lower())}-{'dark' if dark else 'light'}.png"
        page.screenshot(path=folder / file, full_page=True)

    return shoot


@pytest.fixture(scope="session")
def axe() -> Check:
    """``axe(page)``: axe-core finds nothing serious or critical in what the page shows."""
    return _axe({"resultTypes": ["violations"]})


@pytest.fixture(scope="session")
def readable(axe: Check, screenshot: Shoot) -> Shoot:
    """``readable(page, name)``: what the page shows, unfolded, has no serious fault in either
    theme; with a screenshot of both. The themes differ in nothing but their colours."""
    contrast = _axe({"resultTypes": ["violations"], "runOnly": ["color-contrast"]})

    def check(page: Page, name: str) -> None:
        screenshot(page, name)
        page.emulate_media(color_scheme="dark")
        screenshot(page, name)
        page.evaluate(OPEN_ALL)
        contrast(page)
        page.emulate_media(color_scheme="light")
        axe(page)

    return check


def _axe(options: dict[str, Any]) -> Check:
    checker = Axe()

    def check(page: Page) -> None:
        # a policy against foreign scripts is not one against the debugger's
        found = checker.run(page, options=options)
        grave = [
            f"{item['id']} ({item['impact']}): {item['help']}: "
            + "; ".join(node["html"][:200] for node in item["nodes"][:3])
            for item in found.response["violations"]
            if item["impact"] in ("serious", "critical")
        ]
        assert grave == [], "\n".join(grave)

    return check


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; each test opens a context of its own. While it is there this thread has an event
    loop, and tests of other modules could not run theirs."""
    with launched() as found:
        yield found
