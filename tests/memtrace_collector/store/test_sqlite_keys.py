"""Narrow keys only lead to candidates: names that share one are never taken for each other."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from memtrace_collector.graph.facts import SpanFacts, Value
from memtrace_collector.graph.reader import Near
from memtrace_collector.graph.references import acted_on, used_by
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.store import keys
from memtrace_collector.store.base import FactStore
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_otel import variables
from tests.memtrace_collector.graph.build import GRAPH, operation

OPERATIONS = [
    operation(
        f"t{n % 7}/s{n}",
        "update" if n % 3 else "retrieve",
        n,
        graph_id=GRAPH if n % 5 else "user:eve",
        tenant="default" if n % 4 else "other",
        inputs=[f"mem:s:{n % 11}@a", f"fact:f@{n}"],
        outputs=[f"mem:s:{n % 6}@{n}"],
        response_id=f"r{n % 9}",
        conversation_id=f"c{n % 2}",
    )
    for n in range(120)
]


def answers(store: FactStore) -> list[object]:
    records = [f"mem:s:{n}" for n in range(12)]
    refs = [f"{record}@a" for record in records] + [f"mem:s:1@{n}" for n in range(120)]
    every = [item.key for item in OPERATIONS]
    return [
        store.operations(GRAPH, every[::2]),
        store.producers(GRAPH, refs),
        store.record_writers(GRAPH, records),
        store.users(GRAPH, refs),
        store.record_users(GRAPH, records),
        store.values(GRAPH, refs),
        store.first_position(every[::3]),
        store.trace_siblings([every[1]]),
        store.trace_operations(every[1].trace_id),
        store.response_operations("r3"),
        store.conversation_operations("c1"),
        store.graph_hash(GRAPH),
    ]


def fill(store: FactStore) -> None:
    for number, item in enumerate(OPERATIONS):
        value = Value(
            graph_id=item.graph_id, ref=item.outputs[0], tenant=item.tenant, content=f"{number}"
        )
        facts = SpanFacts(tenant=item.tenant, operation=item, values=(value,))
        store.apply([(LogPosition(1, number), facts)], START)
    changed = structs.replace(OPERATIONS[1], end_ns=OPERATIONS[1].end_ns + 1, digest="0")
    again = [SpanFacts(tenant=item.tenant, operation=item) for item in (*OPERATIONS, changed)]
    applied = store.apply([(LogPosition(2, 1), item) for item in again], START)
    assert (applied.added, applied.duplicates, applied.conflicts) == ((), 120, 1)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_names_that_share_a_key_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
) -> None:
    monkeypatch.setattr(keys, "crc32", lambda _, start=0: start and 8)
    monkeypatch.setattr(keys, "_digest", lambda *_: b"same")
    keys._trace_key.cache_clear()
    monkeypatch.setattr("memtrace_collector.store.user_index.INDEXED_FROM", 1)
    expected = InMemoryFactStore()
    fill(expected)
    with closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        fill(store)
        while is_indexed and store.tidy(1.0):
            pass
        assert answers(store) == answers(expected)
        store.erase("user:eve")
        expected.erase("user:eve")
        assert answers(store) == answers(expected)
    keys._trace_key.cache_clear()


def test_of_those_that_started_together_the_nearest_are_the_same_in_every_store(
    tmp_path: Path,
) -> None:
    reads = [operation(f"r{n}/s", "retrieve", n // 4, delivered=["mem:s:1@a"]) for n in range(40)]
    expected = InMemoryFactStore()
    with closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        for each in (expected, store):
            each.apply([(START, SpanFacts(operation=item)) for item in reversed(reads)], START)
        near = Near(reads[21].start_ns, first=2, before=3, after=6)
        assert store.record_users(GRAPH, ["mem:s:1"], near) == expected.record_users(
            GRAPH, ["mem:s:1"], near
        )


def test_keys_say_what_acted_on_a_record_and_what_merely_met_it() -> None:
    for item in OPERATIONS[:6]:
        acted = {variables.record_of(ref) for ref in acted_on(item)}
        met = {variables.record_of(ref) for ref in used_by(item)} - acted
        found = set(keys.unpacked(keys.use_keys(item)))
        assert found == {*map(keys.record_key, acted), *map(keys.met_key, met)}
    low, high = keys.record_refs("mem:s:1")
    assert all(low <= keys.ref_key(f"mem:s:1@{n}") <= high for n in range(50))
    assert keys.record_refs("no-version")[0] <= keys.ref_key("no-version")
