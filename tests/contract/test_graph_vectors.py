"""Every contract vector gives its graph: whatever the order, the duplicates and the store."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memtrace_collector.graph import flags
from memtrace_collector.graph.ancestry import ancestry
from memtrace_collector.graph.facts import Operation, OperationKey, SpanFacts
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import FactStore
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.contract import scenarios
from tests.contract.test_fact_stores import MAKERS

ORDERS: dict[str, Callable[[list[SpanFacts]], list[SpanFacts]]] = {
    "as sent": lambda facts: facts,
    "reversed": lambda facts: facts[::-1],
    "twice": lambda facts: [*facts, *facts[::-1]],
}
MERGED = scenarios.facts("merged_wrong")


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest) -> Iterator[FactStore]:
    store = MAKERS[request.param](request)
    yield store
    store.close()


def put(store: FactStore, facts: list[SpanFacts]) -> None:
    """One batch per fact: the order in which they arrive is the order of transactions."""
    for offset, item in enumerate(facts):
        store.apply([(LogPosition(1, offset), item)], LogPosition(1, offset + 1))


def answer_of(store: FactStore, expected: dict[str, Any]) -> Operation:
    key = key_of(expected["answer"])
    return store.operations(expected["graph_id"], [key])[key]


def key_of(span: dict[str, str]) -> OperationKey:
    return OperationKey(span["traceId"], span["spanId"])


@pytest.mark.fault("F13")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", scenarios.NAMES)
def test_vector_gives_its_operations_ancestry_history_and_lineage(
    store: FactStore, name: str, order: str
) -> None:
    expected = scenarios.expected(name)
    put(store, ORDERS[order](scenarios.facts(name)))

    assert sum(item.operations for item in store.graphs()) == expected["operations_in_file"]
    lookups = Lookups(store)
    found = ancestry(lookups, answer_of(store, expected))
    assert found.status == expected["verdict"]["lineage"]
    for span in expected["ancestry_contains"]:
        assert key_of(span) in found.operations
    for span in expected["ancestry_excludes"]:
        assert key_of(span) not in found.operations
    if expected["history"]:
        writes = lookups.history(expected["graph_id"], expected["history"]["record"])
        assert [write.operation.key for write in writes] == [
            key_of(span) for span in expected["history"]["writes"]
        ]


@pytest.mark.parametrize("evidence_given", [True, False])
@pytest.mark.parametrize("name", scenarios.NAMES)
def test_case_of_a_vector_holds_the_decisive_operation(
    store: FactStore, name: str, evidence_given: bool
) -> None:
    expected = scenarios.expected(name)
    put(store, scenarios.facts(name))
    (flag,) = store.flags()
    answer = flags.resolve(store, flag)
    assert answer is not None and answer.key == key_of(expected["answer"])

    case = load_case(store, answer, flag, evidence_given=evidence_given)

    for decisive in expected["verdict"]["decisive"]:
        assert key_of(decisive) in case.operations
    assert case.lineage == expected["verdict"]["lineage"]
    assert case.evidence_given == (evidence_given and bool(flag.evidence))
    known = [ref for ref in (expected["verdict"]["last_right"],) if ref]
    assert all(ref in case.texts for ref in known)


def test_every_store_gives_the_same_case(tmp_path: Path) -> None:
    sqlite = SqliteFactStore(tmp_path / "facts.db")
    for name in scenarios.NAMES:
        facts = scenarios.facts(name)
        memory = InMemoryFactStore.of(facts)
        put(sqlite, facts)
        (flag,) = memory.flags()
        answer = answer_of(memory, scenarios.expected(name))
        for given_evidence in (True, False):
            assert load_case(sqlite, answer, flag, evidence_given=given_evidence) == load_case(
                memory, answer, flag, evidence_given=given_evidence
            )
    sqlite.close()


@pytest.mark.fault("F11", "F13")
def test_a_shuffled_file_with_repeats_gives_the_same_hash(store: FactStore) -> None:
    put(store, scenarios.facts("merged_wrong.shuffled"))
    assert store.graph_hash("user:merged_wrong") == InMemoryFactStore.of(MERGED).graph_hash(
        "user:merged_wrong"
    )


@given(st.lists(st.sampled_from(range(len(MERGED))), max_size=10), st.randoms())
@settings(max_examples=60, deadline=None)
@pytest.mark.fault("F11", "F13")
def test_any_order_with_any_repeats_gives_the_same_hash(
    repeats: list[int], rng: random.Random
) -> None:
    facts = [*MERGED, *(MERGED[index] for index in repeats)]
    rng.shuffle(facts)
    assert InMemoryFactStore.of(facts).graph_hash("user:merged_wrong") == InMemoryFactStore.of(
        MERGED
    ).graph_hash("user:merged_wrong")


@given(st.randoms(), st.integers(min_value=1, max_value=7))
@settings(max_examples=15, deadline=None)
@pytest.mark.fault("F11", "F13")
def test_any_batching_in_sqlite_gives_the_same_hash(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random, size: int
) -> None:
    facts = [*MERGED, *MERGED[:5]]
    rng.shuffle(facts)
    store = SqliteFactStore(tmp_path_factory.mktemp("store") / "facts.db")
    for start in range(0, len(facts), size):
        batch = [(LogPosition(1, start), item) for item in facts[start : start + size]]
        store.apply(batch, LogPosition(1, start))
    assert store.graph_hash("user:merged_wrong") == InMemoryFactStore.of(MERGED).graph_hash(
        "user:merged_wrong"
    )
    store.close()


def test_a_value_or_a_flag_changes_the_hash() -> None:
    whole = InMemoryFactStore.of(MERGED).graph_hash("user:merged_wrong")
    without_values = [SpanFacts(operation=item.operation, flags=item.flags) for item in MERGED]
    without_flags = [SpanFacts(operation=item.operation, values=item.values) for item in MERGED]
    assert InMemoryFactStore.of(without_values).graph_hash("user:merged_wrong") != whole
    assert InMemoryFactStore.of(without_flags).graph_hash("user:merged_wrong") != whole
