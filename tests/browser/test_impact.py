"""What came of a message, on the page: the ids to delete are those of the command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.browser.chromium import shown
from tests.browser.conftest import Explorer
from tests.demo_run import DemoRun
from tests.memtrace_collector.running import command, environment


def evidence(explorer: Explorer) -> str:
    """The message that the overwritten weight came from."""
    path = explorer.case("start-weight")["verdict"]["path"]
    return str(next(hop["versions"][0] for hop in path if hop["kind"] == "evidence"))


def impact_of(target: str) -> str:
    return f"#/impact/{quote(target, safe='')}"


def test_the_ids_to_delete_are_those_of_the_command_line(
    page: Page, explorer: Explorer, demo: DemoRun, tmp_path: Path
) -> None:
    target = evidence(explorer)
    store = tmp_path / "demo"
    shutil.copytree(demo.store, store)
    line = command("impact", target, "--records", "--store", str(store))
    printed = subprocess.run(
        line, check=True, capture_output=True, text=True, env=environment(), timeout=60
    ).stdout
    explorer.open(page, impact_of(target))
    ids = page.get_by_label("Ids of the records")
    expect(ids).to_have_value(printed.rstrip("\n"))
    page.get_by_label("JSON").check()
    assert json.loads(ids.input_value()) == printed.split()


def test_every_record_says_by_which_chain_it_came(page: Page, explorer: Explorer) -> None:
    explorer.open(page, impact_of(evidence(explorer)))
    records = page.get_by_role("region", name="Records to correct or delete")
    row = records.get_by_role("row").filter(has_text="75kg")
    expect(row.locator("ol.chain")).to_have_text(re.compile("message.*fact.*record"))
    answers = page.get_by_role("region", name="Answers given from it")
    expect(answers).to_contain_text("update / overwritten")
    row.get_by_role("link", name="mem:mem0").click()
    expect(page.get_by_role("heading", name="Record mem:mem0")).to_be_visible()


def test_a_message_is_found_by_its_words_and_opened_by_keyboard(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, "#/impact")
    graph_id = explorer.case("start-weight")["verdict"]["graph_id"]
    page.get_by_label("Graph").select_option(graph_id)
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("waist and hips")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table")).to_contain_text("88cm")
    page.get_by_role("link", name="Just to confirm again").focus()
    page.keyboard.press("Enter")
    shown(page, impact_of(evidence(explorer)))


def test_hostile_texts_stay_text(page: Page, hostile: Explorer) -> None:
    hostile.open(page, "#/impact")
    page.locator("main tbody a").first.click()
    expect(page.get_by_role("heading", name="What came of")).to_be_visible()
    expect(page.locator("main .captured").first).to_contain_text("<img src=x onerror=")
    assert page.locator("main img, main script").count() == 0
    assert page.title() != "pwned"
