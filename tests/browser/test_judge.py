"""A verdict judged by hand on the page: kept, counted, delivered, and taken back."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests import ports
from tests.browser.chromium import span_text, watched_page
from tests.browser.conftest import Explorer, Shoot
from tests.memtrace_collector.running import (
    VECTORS,
    Up,
    command,
    environment,
    eventually,
    start_up,
)

NOTE = "<img src=x onerror=alert(1)> it said Lisbon"


@dataclass(frozen=True)
class Judged:
    """A running `up` with one verdict, and a destination that does not answer."""

    up: Up
    store: Path
    verdict: dict[str, Any]

    @property
    def explorer(self) -> Explorer:
        return Explorer(self.up.addresses["api"])

    @property
    def address(self) -> str:
        return f"#/failure/{self.verdict['id']}"

    def verdicts(self) -> Any:
        """What `verdicts --format json` prints of this failure's graph."""
        line = command(
            *("verdicts", "--format", "json", "--store", str(self.store)),
            *("--graph", self.verdict["graph_id"]),
        )
        done = subprocess.run(
            line, check=True, capture_output=True, text=True, env=environment(), timeout=60
        )
        return json.loads(done.stdout)

    def outbox(self) -> set[str]:
        with closing(sqlite3.connect(self.store / "cases.db")) as cases:
            return {row[0] for row in cases.execute("SELECT id FROM outbox")}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Up, Path, list[Any]]]:
    """A failure for each test, in one `up`."""
    store = tmp_path_factory.mktemp("judged") / "store"
    up = start_up(store, "--forward", f"http://127.0.0.1:{ports.free_port()}")
    try:
        for name in ("overwritten", "merged_wrong", "wrongly_deleted"):
            up.post((VECTORS / f"{name}.otlp.json").read_bytes())
        eventually(lambda: len(up.ask("/verdicts")) == 3, "the verdicts")
        yield up, store, up.ask("/verdicts")
    finally:
        up.stop()


@pytest.fixture
def judged(request: pytest.FixtureRequest, three: tuple[Up, Path, list[Any]]) -> Judged:
    """The failure of the type that the test names."""
    up, store, verdicts = three
    return Judged(up, store, next(each for each in verdicts if each["error_type"] == request.param))


def _panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Judged by hand")


def _opened(page: Page, judged: Judged) -> Locator:
    judged.explorer.open(page, judged.address)
    panel = _panel(page)
    panel.locator("summary").click()
    expect(panel.get_by_role("button", name="Save the judgement")).to_be_visible()
    return panel


@pytest.mark.parametrize("judged", ["overwritten"], indirect=True)
def test_a_verdict_is_corrected_and_the_correction_is_everywhere(
    page: Page, judged: Judged, axe: Callable[[Page], None], screenshot: Shoot
) -> None:
    panel = _opened(page, judged)
    panel.get_by_label("It is wrong: correct it").check()
    panel.get_by_label("Stage").select_option("extraction")
    panel.get_by_label("Type", exact=True).select_option("distortion")
    expect(panel.get_by_text("says something else: a time, a name, a number")).to_be_visible()
    panel.get_by_label("Why (it may be quoted)").fill(NOTE)
    panel.get_by_label("Your name").fill("Anna")
    panel.get_by_role("button", name="Save the judgement").click()
    expect(panel.get_by_text("Choose the operation at which it happened.")).to_be_visible()
    axe(page)
    screenshot(page, "judge")
    hop = next(hop for hop in judged.verdict["path"] if hop["kind"] == "extraction")
    panel.get_by_label("Find").fill("extract")
    panel.locator(f"input[value='{span_text(hop['span'])}']").check()
    panel.get_by_role("button", name="Save the judgement").click()
    expect(panel.get_by_text("Corrected")).to_be_visible()
    page.reload()
    expect(panel.get_by_text("by Anna")).to_be_visible()
    expect(panel.get_by_text(NOTE)).to_be_visible()
    expect(panel.get_by_text("said update / overwritten")).to_be_visible()
    axe(page)
    screenshot(page, "judged")
    (verdict,) = judged.verdicts()
    assert (verdict["method"], verdict["error_type"]) == ("human", "distortion")
    assert verdict["decisive"][0]["spanId"] == hop["span"]["spanId"]
    assert verdict["judgement"]["note"] == NOTE
    assert 'memtrace_judgements_total{agreement="stage"} 1.0' in judged.up.metrics()
    rows = {f"{verdict['id']}/2/{name}" for name in ("case", "attribution", "evaluation")}
    eventually(lambda: rows <= judged.outbox(), "the rows of the judgement in the outbox")


@pytest.mark.parametrize("judged", ["merged_wrong"], indirect=True)
def test_a_confirmation_is_made_by_keyboard_and_withdrawn(page: Page, judged: Judged) -> None:
    judged.explorer.open(page, judged.address)
    panel = _panel(page)
    panel.locator("summary").focus()
    page.keyboard.press("Enter")
    name = panel.get_by_label("Your name")
    name.focus()
    page.keyboard.type("Bob")
    page.keyboard.press("Enter")
    expect(panel.get_by_text("Confirmed")).to_be_visible()
    assert judged.verdicts()[0]["judgement"]["action"] == "confirmed"
    panel.locator("summary").click()
    expect(name).to_have_value("Bob")
    panel.get_by_role("button", name="Withdraw this judgement").click()
    expect(panel.get_by_text("A judgement was withdrawn.")).to_be_visible()
    (verdict,) = judged.verdicts()
    assert (verdict["revision"], verdict["method"]) == (3, "rules")


@pytest.mark.parametrize("judged", ["wrongly_deleted"], indirect=True)
def test_who_was_overtaken_is_told_and_shown_what_stands(browser: Browser, judged: Judged) -> None:
    with watched_page(browser, may_fail=re.compile("409")) as page:
        judged.explorer.open(page, judged.address)
        answer = span_text(judged.verdict["answer"])
        judged.up.send("/judge", {"answer": answer, "action": "confirm", "by": "Carol"})
        panel = _panel(page)
        panel.locator("summary").click()
        panel.get_by_role("button", name="Save the judgement").click()
        expect(panel.get_by_text("look at that one and judge again")).to_be_visible()
        panel.get_by_role("button", name="Show what stands now").click()
        expect(panel.get_by_text("by Carol")).to_be_visible()
        expect(panel.locator("summary")).to_have_text("Judge it again")
