"""How fast the page shows a failure's path in a graph of 10,000 operations, and a long list.

    python -m tests.benchmarks.bench_explorer                      # a minute
    python -m tests.benchmarks.bench_explorer --operations 100000

An owner's years (``owner_graph.py``) with planted failures are written through the SQLite fact
store, one is judged once by rules, and `memtrace-otel up` serves it. The failure is opened in
Chromium: ``first`` in a new browser that has nothing cached, of a server that was asked nothing
before; then again in the same one. ``shown`` is from the start of the navigation until the
decisive step stands in the page, ``server`` the answer of ``/api/v1/view/failure`` alone. The
baseline is the plain fetch of ``/api/v1/verdicts`` for the same graph, which loads no case; that of
the list is the same fetch over all verdicts. Milliseconds of the clock.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx
from playwright.sync_api import Browser, sync_playwright

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.superseding import stored_form
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.graph.loader import load_case
from memtrace_collector.log.position import START
from memtrace_collector.runtime.stores import FACTS_FILE, open_cases
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests import components
from tests.benchmarks.owner_graph import KINDS, Owner, batches
from tests.browser.chromium import ARGUMENTS
from tests.memtrace_collector.running import start_up

WARM = 7
VERDICTS = 10_000
Json = dict[str, Any]


class Built(NamedTuple):
    """What was written: how many operations, and the verdict on the planted answer."""

    operations: int
    verdict: Json


def build(folder: Path, operations: int, kind: str) -> Built:
    """An owner's graph with one planted answer, and the verdict of the rules on it."""
    folder.mkdir()
    owner = Owner()
    facts = SqliteFactStore(folder / FACTS_FILE)
    for batch in batches(owner.facts(operations, KINDS.index(kind) + 1)):
        facts.apply(((START, item) for item in batch), START)
    planted = next(each for each in owner.planted if each.kind == kind)
    finding = attribute(load_case(facts, planted.answer, planted.flag)).to_json()
    verdict = stored_form(finding, case_id(planted.answer), time.time_ns(), None)
    facts.close()
    assert verdict is not None and verdict["error_type"] == kind, finding["explanation"]
    save(folder, [verdict])
    return Built(owner.operations, verdict)


def save(folder: Path, verdicts: list[Json]) -> None:
    cases = open_cases(folder)
    for verdict in verdicts:
        cases.save_verdict(verdict, [])
    cases.close()


def others_like(verdict: Json, count: int) -> list[Json]:
    """Verdicts of the same size on other answers."""
    return [
        verdict
        | {
            "id": hashlib.sha256(str(number).encode()).hexdigest()[:32],
            "created": f"2026-0{number % 9 + 1}-{number % 28 + 1:02d}T00:00:00.000Z",
        }
        for number in range(count)
    ]


def took(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3


def fetched(url: str, path: str, **parameters: str) -> Callable[[], object]:
    def fetch() -> None:
        response = httpx.get(f"{url}/api/v1{path}", params=parameters, timeout=60, trust_env=False)
        response.raise_for_status()

    return fetch


def opened(browser: Browser, url: str, failure: str, warm: int) -> list[float]:
    """One cold opening in a context of its own, then ``warm`` more in it."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()

    def open_it() -> None:
        page.goto(f"{url}/#/failure/{failure}", wait_until="commit")
        page.locator(".hop.decisive").first.wait_for()

    times = []
    for _ in range(1 + warm):
        page.goto("about:blank")
        times.append(took(open_it))
    context.close()
    return times


def report(name: str, first: float, rest: list[float], baseline: float | None = None) -> None:
    ratio = "" if baseline is None else f"{median(rest) / baseline:8.1f}"
    print(f"{name:34}{first:8.0f}{median(rest):8.0f}{max(rest):8.0f}{ratio}", flush=True)


def measure_failure(browser: Browser, folder: Path, built: Built) -> None:
    name = built.verdict["id"]
    up = start_up(folder)
    try:
        url = up.addresses["api"]
        asking = fetched(url, "/view/failure", id=name)
        plain = fetched(url, "/verdicts", graph=built.verdict["graph_id"])
        cold, *warm = opened(browser, url, name, WARM)
        server = [took(asking) for _ in range(1 + WARM)]
        base = [took(plain) for _ in range(1 + WARM)]
    finally:
        up.stop()
    up = start_up(folder)
    try:
        server[0] = took(fetched(up.addresses["api"], "/view/failure", id=name))
    finally:
        up.stop()
    report("/verdicts (baseline)", base[0], base[1:])
    report("server: /view/failure", server[0], server[1:], median(base[1:]))
    report("shown in Chromium", cold, warm, median(base[1:]))


def measure_list(folder: Path, verdict: Json) -> None:
    save(folder, others_like(verdict, VERDICTS - 1))
    up = start_up(folder)
    try:
        url = up.addresses["api"]
        plain = [took(fetched(url, "/verdicts")) for _ in range(3)]
        page = [took(fetched(url, "/view/failures")) for _ in range(1 + WARM)]
        found = [took(fetched(url, "/view/failures", q="nothing says this")) for _ in range(3)]
    finally:
        up.stop()
    report("/verdicts (baseline)", plain[0], plain[1:])
    report("server: /view/failures", page[0], page[1:], median(plain[1:]))
    report("server: /view/failures?q=", found[0], found[1:], median(plain[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--kind", choices=KINDS, default="ranked_out")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary) / "data"
        built = build(folder, given.operations, given.kind)
        hops = len(built.verdict["path"])
        header = f"{'milliseconds':34}{'first':>8}{'median':>8}{'worst':>8}   ratio"
        print(f"{built.operations:,} operations, {given.kind}, {hops} hops\n{header}")
        browser = playwright.chromium.launch(executable_path=components.chromium(), args=ARGUMENTS)
        measure_failure(browser, folder, built)
        browser.close()
        print(f"{VERDICTS:,} verdicts")
        measure_list(folder, built.verdict)


if __name__ == "__main__":
    main()
