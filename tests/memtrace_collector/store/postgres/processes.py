"""What a test runs in processes of its own, over one database."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from msgspec import structs

from memtrace_collector.graph.facts import Flag, Operation, OperationKey, SpanFacts, Value
from memtrace_collector.log.position import ELSEWHERE, LogPosition
from memtrace_collector.store.base import FactStore
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from memtrace_collector.store.postgres.facts import PostgresFactStore
from tests.memtrace_collector.graph.build import operation

Result = TypeVar("Result")
GRAPHS = tuple(f"user:{number}" for number in range(6))


def together(work: Callable[..., Result], arguments: Iterable[tuple[Any, ...]]) -> list[Result]:
    """What the calls return, each made in a process of its own, all at once."""
    calls = list(arguments)
    with ProcessPoolExecutor(len(calls), mp_context=get_context("spawn")) as pool:
        return [each.result() for each in [pool.submit(work, *call) for call in calls]]


def contended(seed: int, spans: int = 120) -> list[SpanFacts]:
    """Facts that contradict each other: of every span several contents, some in another graph;
    of every reference several values; of every flag several wordings; numbers seen twice."""
    rng = random.Random(seed)
    found: list[SpanFacts] = []
    for number in range(spans):
        first = operation(
            f"t{number % 30}/s{number}",
            "update",
            rng.randrange(50),
            graph_id=rng.choice(GRAPHS),
            inputs=[f"mem:s:{rng.randrange(20)}@a" for _ in range(3)],
            outputs=[f"mem:s:{rng.randrange(20)}@{number}"],
            conversation_id=f"c{number % 7}",
            seq=("p", number + 1),
        )
        for copy in range(rng.choice((1, 1, 2, 3))):
            graph_id, later = rng.choice((first.graph_id, rng.choice(GRAPHS))), rng.choice((0, 5))
            other = structs.replace(
                first,
                end_ns=first.end_ns + later,
                digest=f"{number} {graph_id} {later}",
                graph_id=graph_id,
            )
            found.append(_said(rng, first if copy == 0 else other, number))
    rng.shuffle(found)
    return found


def _said(rng: random.Random, item: Operation, number: int) -> SpanFacts:
    value = Value(
        graph_id=item.graph_id,
        ref=f"mem:s:{number % 15}@a",
        content=rng.choice(("tea", "more tea", "coffee")),
        cut=rng.random() < 0.3,
        verified=rng.random() < 0.2,
    )
    flag = Flag(
        graph_id=item.graph_id,
        trace_id=item.trace_id,
        origin=f"f{number % 12}",
        at_ns=rng.randrange(3),
        reason=rng.choice("ab"),
    )
    return SpanFacts(operation=item, values=(value,), flags=(flag,) if number % 9 == 0 else ())


def apply_in_batches(store: FactStore, facts: list[SpanFacts], size: int) -> Counter[str]:
    """How often facts were new, repeated or contradicted others."""
    counted: Counter[str] = Counter()
    for start in range(0, len(facts), size):
        part = [(LogPosition(1, start + n), item) for n, item in enumerate(facts[start:][:size])]
        applied = store.apply(part, LogPosition(1, start + len(part)))
        counted["added"] += len(applied.added)
        counted["duplicates"] += applied.duplicates
        counted["conflicts"] += applied.conflicts
    return counted


def project(
    url: str, log_id: str, facts: list[SpanFacts], size: int
) -> tuple[Counter[str], set[OperationKey]]:
    """A processor with a log of its own: what it counted, and the operations it saw first."""
    store = PostgresFactStore(url, log_id=log_id)
    counted = apply_in_batches(store, facts, size)
    keys = [item.operation.key for item in facts if item.operation is not None]
    first = store.first_position(keys)
    assert store.cursor() == LogPosition(1, len(facts))
    store.close()
    return counted, {key for key, position in first.items() if position != ELSEWHERE}


def work(url: str, worker: str, now_ns: int, lease_ns: int) -> list[str]:
    """A worker: the cases that it was given, until there were no more."""
    store = PostgresCaseStore(url)
    taken: list[str] = []
    while leases := store.take(worker, now_ns, lease_ns, 3):
        taken.extend(lease.case.case_id for lease in leases)
    store.close()
    return taken


def open_and_close(url: str) -> list[str]:
    """A process that starts: the graphs that it finds."""
    facts, cases = PostgresFactStore(url), PostgresCaseStore(url)
    found = [each.graph_id for each in facts.graphs()]
    facts.close()
    cases.close()
    return found
