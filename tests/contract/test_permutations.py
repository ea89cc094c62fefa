"""Order, repeats and batches change nothing: every vector has one hash, in every store."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import FactStore
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.contract import scenarios
from tests.contract.test_fact_stores import MAKERS

FACTS = [item for name in scenarios.NAMES for item in scenarios.facts(name)]
"""Every vector: their graphs and traces differ, their processes do not."""
EXAMPLES = {"in memory": 25, "sqlite": 8, "postgresql": 3}


def hashes(store: FactStore) -> dict[str, str]:
    return {item.graph_id: store.graph_hash(item.graph_id) for item in store.graphs()}


EXPECTED = hashes(InMemoryFactStore.of(FACTS))


@contextmanager
def opened(request: pytest.FixtureRequest, name: str) -> Iterator[FactStore]:
    store = MAKERS[name](request)
    yield store
    store.close()


def apply_in_batches(store: FactStore, facts: list[SpanFacts], sizes: Iterable[int]) -> None:
    offset = 0
    for size in sizes:
        batch = facts[offset : offset + size]
        items = [(LogPosition(1, offset + n), item) for n, item in enumerate(batch)]
        store.apply(items, LogPosition(1, offset + len(batch)))
        offset += size


@pytest.mark.fault("F11", "F13")
@pytest.mark.parametrize("name", MAKERS)
def test_any_permutation_with_repeats_in_any_batches_gives_one_hash(
    request: pytest.FixtureRequest, name: str
) -> None:
    """An example goes on in the store of the one before, whose hashes stay."""
    with opened(request, name) as store:

        @given(st.randoms(use_true_random=False), st.integers(1, 400), st.integers(0, 40))
        @settings(
            max_examples=EXAMPLES[name],
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow],
        )
        def holds(rng: random.Random, largest: int, repeats: int) -> None:
            fresh = store if name != "in memory" else InMemoryFactStore()
            apply_in_batches(fresh, *shuffled(rng, largest, repeats))
            assert hashes(fresh) == EXPECTED

        holds()


@pytest.mark.fault("F13")
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "in memory"])
@pytest.mark.parametrize("seed", range(3))
def test_an_empty_store_gets_the_same_hash_from_every_order(
    request: pytest.FixtureRequest, name: str, seed: int
) -> None:
    with opened(request, name) as store:
        apply_in_batches(store, *shuffled(random.Random(seed), 60, 20))
        assert hashes(store) == EXPECTED


def shuffled(
    rng: random.Random, largest: int, repeats: int
) -> tuple[list[SpanFacts], Iterator[int]]:
    """Facts in another order, some twice, and sizes of batches that hold them all."""
    facts = [*FACTS, *rng.choices(FACTS, k=repeats)]
    rng.shuffle(facts)

    def sizes() -> Iterator[int]:
        left = len(facts)
        while left > 0:
            size = rng.randint(1, largest)
            left -= size
            yield size

    return facts, sizes()
