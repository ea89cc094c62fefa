"""Every address of the page, in both themes."""

from __future__ import annotations

from urllib.parse import quote

from playwright.sync_api import Page

from tests.browser.chromium import span_text
from tests.browser.conftest import Explorer, Shoot


def addresses(explorer: Explorer) -> dict[str, str]:
    """One address of each view, of a failure of the demo, by the name of its screenshot; and
    those of other failures whose pages have parts that the first one has not."""
    verdict = explorer.case("start-weight")["verdict"]
    answer, graph = span_text(verdict["answer"]), quote(verdict["graph_id"], safe="")
    deleted = explorer.case("work-hours")["verdict"]
    distracted = span_text(explorer.case("airlines")["verdict"]["answer"])
    return {
        "failures": "#/failures",
        "failure": f"#/failure/{verdict['id']}",
        "failure script-title": f"#/failure/{explorer.case('script-title')['verdict']['id']}",
        "graph": f"#/graph/{answer}",
        "operation": f"#/operation/{span_text(verdict['decisive'][0])}",
        "graphs": "#/graphs",
        "graph-answers": f"#/graphs?graph={graph}",
        "record": f"#/record/{graph}/{record_of(verdict)}",
        "record deleted": f"#/record/{quote(deleted['graph_id'], safe='')}/{record_of(deleted)}",
        "why": f"#/why/{distracted}?about=China+Southern+Airlines",
        "why-form": "#/why",
        "impact": f"#/impact/{quote(verdict['path'][0]['versions'][0], safe='')}",
        "impact-form": "#/impact",
        "invariants": "#/invariants",
    }


def record_of(verdict: dict[str, str]) -> str:
    return quote(verdict["last_right"].rpartition("@")[0], safe="")


def test_no_view_has_a_serious_accessibility_fault(
    page: Page, explorer: Explorer, readable: Shoot
) -> None:
    for name, address in addresses(explorer).items():
        explorer.open(page, address)
        assert page.title().endswith("memtrace")
        readable(page, name)
