"""What the page is told does not depend on the store: the same of memory, SQLite, PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from memtrace_collector.api.explorer.catalog import VIEWS
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.superseding import stored_form
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.graph import flags
from memtrace_collector.graph.loader import load_case
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store.base import CaseStore, FactStore
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from memtrace_collector.store.postgres.facts import PostgresFactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.contract import scenarios

VECTORS = ("overwritten", "ranked_out", "stale_retrieved", "flapped", "two_graphs")
RECORD = "mem:stub:11"
NOW_NS = 1_800_000_000 * 10**9


@contextlib.contextmanager
def filled(facts: FactStore, cases: CaseStore) -> Iterator[Stores]:
    """The vectors with a verdict on each flagged answer."""
    items = [item for name in VECTORS for item in scenarios.facts(name)]
    facts.apply(((LogPosition(1, n), item) for n, item in enumerate(items)), START)
    for flagged in flags.flagged_answers(facts):
        finding = attribute(load_case(facts, flagged.answer, flagged.flag)).to_json()
        verdict = stored_form(finding, case_id(flagged.answer), NOW_NS, None)
        assert verdict is not None and cases.save_verdict(verdict, [])
    yield Stores(facts, cases)
    facts.close()
    cases.close()


def told(stores: Stores) -> list[Json]:
    """Everything that the views say of the vectors."""
    graphs = [summary.graph_id for summary in stores.graphs.graphs()]
    owned = [each for each in graphs if each.startswith("user:") and each != "user:two_graphs"]
    verdicts = stores.cases.short_verdicts()
    assert len(verdicts) == len(VECTORS)
    asked: list[tuple[str, dict[str, str]]] = [
        ("failures", {}),
        ("graphs", {}),
        ("invariants", {}),
        ("impact", {"target": "msg:conv/1"}),
        ("impact", {"graph": owned[0], "text": "Lisbon"}),
    ]
    for graph_id in graphs:
        asked += [("why", {"graph": graph_id}), ("graph-answers", {"graph": graph_id})]
    asked += [("record", {"graph": graph_id, "record": RECORD}) for graph_id in owned]
    for verdict in verdicts:
        answer = str(verdict.answer_key)
        asked += [("failure", {"id": verdict.id}), ("judging", {"id": verdict.id})]
        asked += [("why", {"answer": answer, "about": about}) for about in (RECORD, "Porto")]
        asked += [("graph", {"answer": answer, "of": of}) for of in ("ancestry", "case")]
        asked += [("answer", {"answer": answer}), ("operation", {"span": answer})]
    assert {name for name, _ in asked} == set(VIEWS)
    return [VIEWS[name](stores, parameters) for name, parameters in asked]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_views_say_the_same_over_every_store(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with filled(InMemoryFactStore(), SqliteCaseStore(tmp_path / "none.db")) as stores:
        expected = told(stores)
    pair: tuple[FactStore, CaseStore]
    if engine == "sqlite":
        pair = SqliteFactStore(tmp_path / "facts.db"), SqliteCaseStore(tmp_path / "cases.db")
    else:
        url = request.getfixturevalue("postgres_url")
        pair = PostgresFactStore(url), PostgresCaseStore(url)
    with filled(*pair) as stores:
        assert told(stores) == expected
