"""What the page is told does not depend on the store: the same of memory, SQLite, PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from memtrace_collector.api.explorer.impact import impact
from memtrace_collector.api.explorer.invariants import invariants
from memtrace_collector.api.explorer.record import record
from memtrace_collector.api.explorer.why import why
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
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


@contextlib.contextmanager
def filled(facts: FactStore, cases: CaseStore) -> Iterator[Stores]:
    items = [item for name in VECTORS for item in scenarios.facts(name)]
    facts.apply(((LogPosition(1, n), item) for n, item in enumerate(items)), START)
    yield Stores(facts, cases)
    facts.close()
    cases.close()


def told(stores: Stores) -> list[Json]:
    """Everything that the views say of the vectors."""
    graphs = [summary.graph_id for summary in stores.graphs.graphs()]
    owned = [each for each in graphs if each.startswith("user:") and each != "user:two_graphs"]
    answers = [why(stores, {"graph": graph_id}) for graph_id in graphs]
    spans = [each["span"] for found in answers for each in found["answers"]["items"]]
    keys = [f"{span['traceId']}:{span['spanId']}" for span in spans]
    return [
        *answers,
        *(record(stores, {"graph": graph_id, "record": RECORD}) for graph_id in owned),
        *(
            why(stores, {"answer": key, "about": about})
            for key in keys
            for about in (RECORD, "Porto")
        ),
        impact(stores, {"target": "msg:conv/1"}),
        impact(stores, {"graph": owned[0], "text": "Lisbon"}),
        invariants(stores, {}),
    ]


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
