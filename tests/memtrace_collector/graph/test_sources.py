"""What stands behind operations is what every rule says, however few of them are asked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memtrace_collector.graph import deciding, resolution
from memtrace_collector.graph.facts import Operation, SpanFacts
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.references import ancestry_inputs
from memtrace_collector.graph.resolution import Use
from memtrace_collector.graph.sources import Role, Source, resolve_sources
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.contract import scenarios
from tests.contract.test_scenarios import NAMES, told_facts


def by_every_rule(store: InMemoryFactStore, operation: Operation) -> list[Source]:
    lookups = Lookups(store)

    def behind(refs: tuple[str, ...], role: Role) -> list[Source]:
        uses = [Use(operation, ref) for ref in refs]
        found = resolution.resolve(lookups, uses)
        return [Source(o.operation.key, role) for use in uses for o in found[use.key].occurrences]

    choices = deciding.choices(operation, lookups.tree(operation.trace_id))
    return [
        *behind(tuple(ancestry_inputs(operation, None)), Role.SOURCE),
        *(Source(choice.operation.key, Role.DECIDER) for choice in choices),
        *behind(operation.supersedes, Role.PREDECESSOR),
    ]


VECTORS = [pytest.param(scenarios.facts(name), id=name) for name in scenarios.NAMES]
HELD_OUT = [pytest.param(told_facts(name)[0], id=name) for name in NAMES]


@pytest.mark.parametrize("facts", [*VECTORS, *HELD_OUT])
def test_sources_are_those_of_the_full_resolution(facts: Sequence[SpanFacts]) -> None:
    store = InMemoryFactStore.of(facts)
    operations = [item.operation for item in facts if item.operation is not None]
    found = resolve_sources(store, operations)
    assert found == {item.key: by_every_rule(store, item) for item in operations}
