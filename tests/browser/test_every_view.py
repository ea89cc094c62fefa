"""Every address of the page, in both themes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from playwright.sync_api import Page

from tests.browser.chromium import span_text
from tests.browser.conftest import Explorer, Shoot


def addresses(explorer: Explorer) -> dict[str, str]:
    """One address of each view, of a failure of the demo, by the name of its screenshot."""
    verdict = explorer.case("start-weight")["verdict"]
    answer, graph = span_text(verdict["answer"]), quote(verdict["graph_id"], safe="")
    record = quote(verdict["last_right"].rpartition("@")[0], safe="")
    return {
        "failures": "#/failures",
        "failure": f"#/failure/{verdict['id']}",
        "graph": f"#/graph/{answer}",
        "graph-case": f"#/graph/{answer}?of=case",
        "operation": f"#/operation/{span_text(verdict['decisive'][0])}",
        "graphs": "#/graphs",
        "graph-answers": f"#/graphs?graph={graph}",
        "record": f"#/record/{graph}/{record}",
        "why": f"#/why/{answer}?about=weight",
        "why-form": "#/why",
        "impact": f"#/impact/{quote(verdict['last_right'], safe='')}",
        "impact-form": "#/impact",
        "invariants": "#/invariants",
    }


def test_no_view_has_a_serious_accessibility_fault(
    themed_page: Page, explorer: Explorer, axe: Callable[[Page], None], screenshot: Shoot
) -> None:
    for name, address in addresses(explorer).items():
        explorer.open(themed_page, address)
        assert themed_page.title().endswith("memtrace")
        axe(themed_page)
        screenshot(themed_page, name)
