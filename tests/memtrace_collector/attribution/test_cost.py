"""What attribution costs, in counted work and not in seconds: no more than linear in the size of
the case, and a case no larger because its owner's graph is.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Dropped, SpanFacts
from memtrace_collector.graph.loader import MAX_OPERATIONS, load_case
from memtrace_collector.log.position import START
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.benchmarks.owner_graph import KINDS, Owner, batches
from tests.memtrace_collector.attribution.scripts import Script

_SMALL, _LARGE = 200, 800
_LINEAR = 1.35
"""Four times the case may cost this much more than four times the work."""


def calls_of(run: Callable[[], object]) -> int:
    """How many functions, Python's own included, are called."""
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        counted[event] += 1

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counted["call"] + counted["c_call"]


def case_of_many(folder: Path, records: int, *, shown: int, fault: str) -> Case:
    """A case with so many records, versions, candidates and messages that name the subject."""
    script = Script()
    told, right = script.remember("My vet is Dr. Osei.", record="vet")
    others = []
    for number in range(records):
        script.day(number % 28)
        _, version = script.remember(
            f"Note {number}: bought item {number * 7} at shop {number % 13} near my vet.",
            record=str(number),
        )
        others.append(version)
    script.ask("Who is my vet?", day=29)
    met = [right, *others] if fault == "ignored" else others
    delivered = met[:shown]
    dropped = [Dropped(ref, 0.5, "limit") for ref in met[shown:]]
    script.retrieve(*delivered, dropped=dropped)
    script.answer("It is Dr. Brandt.", script.assemble(*delivered))
    script.flag("Dr. Osei", told)
    facts = [SpanFacts(operation=item) for item in script.operations]
    store = SqliteFactStore(folder / f"{fault}{records}.sqlite")
    store.apply(((START, item) for item in [*facts, SpanFacts(values=tuple(script.values))]), START)
    case = load_case(store, script.operations[-1], script.flags[-1])
    store.close()
    return case


@pytest.mark.parametrize("fault", ["missed", "ignored"])
@pytest.mark.parametrize("share_shown", [0.05, 1.0])
def test_the_work_of_the_rules_is_linear_in_the_case(
    tmp_path: Path, fault: str, share_shown: float
) -> None:
    work, sizes = [], []
    for records in (_SMALL, _LARGE):
        case = case_of_many(tmp_path, records, shown=int(records * share_shown) + 1, fault=fault)
        work.append(calls_of(lambda case=case: attribute(case)))
        sizes.append(len(case.operations) + len(case.texts))
    assert sizes[1] > 3.5 * sizes[0]
    assert work[1] / work[0] <= _LINEAR * sizes[1] / sizes[0]


def owned(folder: Path, operations: int) -> tuple[SqliteFactStore, Owner]:
    store, owner = SqliteFactStore(folder / f"{operations}.sqlite"), Owner()
    for batch in batches(owner.facts(operations, len(KINDS))):
        store.apply(((START, facts) for facts in batch), START)
    return store, owner


def test_a_case_and_the_work_of_loading_it_hardly_grow_with_the_graph(tmp_path: Path) -> None:
    sizes, work = [], []
    for operations in (1_500, 6_000):
        store, owner = owned(tmp_path, operations)
        size = calls = 0
        for planted in owner.planted:
            fresh = SqliteFactStore(store.files.facts, writable=False)  # nothing is decoded yet
            found: list[Case] = []
            calls += calls_of(
                lambda fresh=fresh, planted=planted, found=found: found.append(
                    load_case(fresh, planted.answer, planted.flag)
                )
            )
            fresh.close()
            size += len(found[0].operations)
            assert attribute(found[0]).error_type == planted.kind
            assert found[0].lineage == "complete"
        sizes.append(size)
        work.append(calls)
        store.close()
    assert sizes[1] <= 1.8 * sizes[0] and work[1] <= 2 * work[0]
    assert sizes[1] / len(KINDS) < MAX_OPERATIONS / 20
