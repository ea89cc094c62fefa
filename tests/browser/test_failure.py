"""A failure's page in a real browser: the path of the information."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.superseding import stored_form
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph import flags
from memtrace_collector.graph.loader import load_case
from memtrace_collector.runtime.stores import CASES_FILE
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from tests.browser import hostile as hostile_spans
from tests.browser.chromium import shown, span_text, watched_page
from tests.browser.conftest import OPEN_ALL, TRACE_URL, Explorer, Shoot, running, served
from tests.contract import scenarios
from tests.memtrace_collector.running import VECTORS, eventually

NOW_NS = 1_800_000_000 * 10**9


def open_failure(page: Page, explorer: Explorer, name: str) -> dict[str, Any]:
    case = explorer.case(name)
    explorer.open(page, f"#/failure/{case['verdict']['id']}")
    return case


def decisive(page: Page) -> Locator:
    return page.locator("li.hop.decisive")


def vector(explorer: Explorer, graph: str = "") -> str:
    """The only failure of a graph, or of all."""
    (found,) = explorer.ask("/view/failures", graph=graph)["failures"]
    return f"#/failure/{found['id']}"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """Two failures: a record that was a candidate and did not make the cut, and one that was
    overwritten, of which no text was captured."""
    with running(tmp_path_factory.mktemp("vectors") / "store") as up:
        up.post((VECTORS / "ranked_out.otlp.json").read_bytes())
        up.post(_without_texts("overwritten"))
        eventually(lambda: len(up.ask("/verdicts")) == 2, "both verdicts")
        yield Explorer(up.addresses["api"])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    """A verdict of everything that one may hold, and no span."""
    finding = verdict_of("overwritten").to_json()
    (loss,) = finding["decisive"]
    ranked_out = {"stage": "retrieval", "error_type": "ranked_out"}
    arm = {"right": 3, "wrong": 0, "unclear": 0, "replies": ["Lisbon"]}
    call = {"kind": "holds", "says": True, "why": "it says so", "quote": "Lisbon", "reply": "{}"}
    richer = finding | {
        "method": "model",
        "also": [loss | ranked_out],
        "alternatives": [ranked_out | {"decisive": [loss | ranked_out], "score": 0.2}],
        "replay": {
            "result": "reproduced", "reason": "the reply changes", "runs": 3, "flips": 0,
            "missing": None, "steps": [{"step": "retrieval", "outcome": "delivered", "rank": 1}],
            "repaired": arm, "control": arm | {"right": 0, "wrong": 3},
        },
        "model": {
            "model": "gpt-test", "calls": 2, "tokens": {"prompt": 20, "completion": 10},
            "cost": 0.0012, "stopped": None, "asked": [call | {"prompt": hostile_spans.TEXT}],
        },
    }  # fmt: skip
    with closing(SqliteCaseStore(tmp_path_factory.mktemp("alone") / CASES_FILE)) as cases:
        for each in (finding, richer):
            verdict = stored_form(each, "ab" * 16, NOW_NS, cases.verdict("ab" * 16))
            assert verdict is not None and cases.save_verdict(verdict, [])
        with served(InMemoryFactStore(), cases) as url:
            yield Explorer(url)


def verdict_of(name: str) -> Verdict:
    facts = InMemoryFactStore.of(scenarios.facts(name))
    (flag,) = facts.flags()
    answer = flags.resolve(facts, flag)
    assert answer is not None
    return attribute(load_case(facts, answer, flag))


def _without_texts(name: str) -> bytes:
    document = json.loads((VECTORS / f"{name}.otlp.json").read_text("utf-8"))
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                span["attributes"] = [
                    item for item in span["attributes"] if item["key"] != "memtrace.values"
                ]
    return json.dumps(document).encode()


def test_a_planted_failure_shows_the_operation_that_was_planted(
    page: Page, explorer: Explorer
) -> None:
    planted = [case for case in explorer.cases if case["planted"]]
    assert len(planted) == 9
    for case in planted:
        open_failure(page, explorer, case["id"])
        expect(decisive(page)).to_have_count(1)
        expect(decisive(page).locator("summary").first).to_contain_text("decisive")
        expect(decisive(page).locator("details").first).to_have_attribute("open", "")
        expect(decisive(page)).to_contain_text(span_text(case["planted"]["operation"]))
        expect(page.locator(".culprit")).to_have_count(1)
        kind = case["planted"]["error_type"].replace("_", " ")
        expect(page.locator(".failure-tags")).to_contain_text(kind)
        asked = page.get_by_role("region", name="The question and its answer")
        for text in (case["question"], case["answered"], case["expected"]):
            expect(asked).to_contain_text(text)


def test_a_changed_value_is_read_side_by_side_with_its_words_marked(
    page: Page, explorer: Explorer
) -> None:
    open_failure(page, explorer, "trip-start")
    sides = page.locator(".culprit figure")
    expect(sides.nth(0)).to_contain_text("March 15th")
    expect(sides.nth(1)).to_contain_text("April 15th")
    assert any("March" in text for text in sides.nth(0).locator("del").all_text_contents())
    assert any("April" in text for text in sides.nth(1).locator("ins").all_text_contents())
    unmarked = sides.nth(0).locator("del").all_text_contents()
    assert not any("campervan" in text for text in unmarked), "what was not taken is not marked"


def test_what_was_expected_is_marked_where_it_was_last_said(page: Page, explorer: Explorer) -> None:
    open_failure(page, explorer, "office-snack")
    expect(page.locator(".culprit figure mark")).to_have_text("afternoon tea")
    expect(decisive(page).locator("figure mark")).to_have_text("afternoon tea")


def test_each_hop_says_what_became_of_the_information_in_a_word(
    page: Page, explorer: Explorer
) -> None:
    open_failure(page, explorer, "start-weight")
    for hop in page.locator("li.hop[data-outcome]").all():
        outcome = hop.get_attribute("data-outcome")
        expect(hop.locator("summary").first.locator(".tag").first).to_have_text(str(outcome))


def test_a_hop_leads_to_its_span_its_operation_and_its_record(
    page: Page, explorer: Explorer
) -> None:
    open_failure(page, explorer, "start-weight")
    written = page.locator('li.hop[data-kind="write"]').first
    written.locator("summary").first.click()
    text = written.locator(".foot code").inner_text()
    trace, span = text.split(":")
    links = {link.inner_text(): link.get_attribute("href") for link in written.locator("a").all()}
    expected = TRACE_URL.replace("{trace_id}", trace).replace("{span_id}", span)
    assert links["in Jaeger"] == expected
    assert links["the operation"] == f"#/operation/{trace}%3A{span}"
    assert str(links["the record's life"]).startswith("#/record/user%3A")
    assert str(links["everything derived from it"]).startswith("#/impact/mem%3A")


def test_a_record_that_was_cut_stands_in_the_table_with_what_beat_it(
    page: Page, vectors: Explorer
) -> None:
    vectors.open(page, vector(vectors, "user:ranked_out"))
    table = decisive(page).locator("table.candidates")
    right = table.locator('tr[data-role="right"]')
    expect(right.locator("th")).to_have_text("2")
    expect(right).to_contain_text("cut: limit")
    beaten_by = table.locator("tr", has_text="beat the right one")
    expect(beaten_by.locator("th")).to_have_text("1")
    expect(page.locator(".culprit")).to_contain_text("Cut at rank 2")


def test_the_prompt_shows_where_the_right_value_stood(page: Page, explorer: Explorer) -> None:
    open_failure(page, explorer, "script-title")
    marked = decisive(page).locator('mark[data-role="right"]').first
    expect(marked).to_contain_text("The Glitched Call")
    expect(page.locator(".culprit mark").first).to_contain_text("The Glitched Call")


def test_a_failure_whose_spans_have_gone_is_told_by_its_verdict(
    page: Page, alone: Explorer, axe: Callable[[Page], None], screenshot: Shoot
) -> None:
    alone.open(page, vector(alone))
    main = page.locator("main")
    expect(main).to_contain_text("The spans of this failure are no longer in the store")
    expect(decisive(page)).to_contain_text("memtrace.decide")
    for text in (
        "retrieval / ranked out", "0.20", "reproduced: the reply changes", "as it was", "gpt-test",
        "2 calls, 30 tokens, $0.0012", "1. holds: yes", "Supersedes revision 1",
    ):  # fmt: skip
        expect(main).to_contain_text(text)
    page.locator("details", has_text="1. holds: yes").locator("summary").click()
    expect(main).to_contain_text(hostile_spans.CLOSING)
    axe(page)
    screenshot(page, "failure without spans")


def test_without_texts_the_path_is_told_and_how_to_capture_them(
    page: Page, vectors: Explorer, axe: Callable[[Page], None], screenshot: Shoot
) -> None:
    vectors.open(page, vector(vectors, "user:overwritten"))
    main = page.locator("main")
    expect(main).to_contain_text("Texts were not captured")
    expect(main).to_contain_text("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY")
    assert page.locator("li.hop").count() > 2
    expect(page.locator("li.hop code").first).to_be_attached()
    axe(page)
    screenshot(page, "failure without texts")


def test_a_hostile_value_is_shown_as_text_and_runs_nothing(
    page: Page, hostile: Explorer, screenshot: Shoot
) -> None:
    hostile.open(page, vector(hostile))
    expect(page.locator(".culprit")).to_contain_text(hostile_spans.MARKUP)
    page.evaluate(OPEN_ALL)
    assert page.locator("main img, main script, main style").count() == 0
    assert page.title().endswith("· memtrace")
    expect(page.locator("main")).to_contain_text(hostile_spans.CLOSING)
    screenshot(page, "failure hostile")


def test_the_keyboard_alone_leads_from_the_list_to_the_evidence(
    page: Page, explorer: Explorer
) -> None:
    explorer.open(page, "#/failures?type=overwritten")
    page.keyboard.press("j")
    expect(page.locator("table.failures tbody th a").first).to_be_focused()
    page.keyboard.press("Enter")
    page.locator("ol.way").first.wait_for()
    first = page.locator("li.hop summary").first
    for _ in range(60):
        page.keyboard.press("Tab")
        if first.evaluate("(node) => node === document.activeElement"):
            break
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    evidence = page.locator('li.hop[data-kind="evidence"] .hop-body')
    expect(evidence).to_be_visible()
    expect(evidence).to_contain_text("My current weight is 75kg")


def test_ids_are_copied_and_the_case_is_downloaded_with_and_without_texts(
    page: Page, explorer: Explorer
) -> None:
    case = explorer.case("start-weight")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=explorer.url)
    open_failure(page, explorer, "start-weight")
    page.get_by_role("button", name="Copy ids").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert f"case {case['verdict']['id']}" in copied
    assert f"decisive {span_text(case['planted']['operation'])}" in copied
    for name, has_texts in (("Download case", True), ("Download without texts", False)):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        text = waiting.value.path().read_text()
        assert ("My current weight is 75kg" in text) is has_texts
        assert json.loads(text)["resourceSpans"]


def test_an_answer_s_address_leads_to_its_failure(page: Page, explorer: Explorer) -> None:
    case = explorer.case("start-weight")
    page.goto(f"{explorer.url}/#/answer/{span_text(case['answer'])}")
    shown(page, f"#/failure/{case['verdict']['id']}")
    expect(page.locator("h2")).to_contain_text("overwritten by another fact")


def test_a_failure_that_is_not_there_is_said_to_be_missing(
    browser: Browser, explorer: Explorer
) -> None:
    with watched_page(browser, may_fail=re.compile("404")) as page:
        explorer.open(page, "#/failure/nobody")
        expect(page.get_by_role("alert")).to_contain_text("no verdict of a case 'nobody'")
