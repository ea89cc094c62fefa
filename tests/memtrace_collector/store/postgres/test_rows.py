"""What a row can hold, and what becomes of what it cannot."""

from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest
from msgspec import structs

from memtrace_collector.graph.facts import Flag, Sequence, SpanFacts, Value
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.processor.quarantine import BAD_DATA
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.keys import ref_key
from memtrace_collector.store.postgres.facts import PostgresFactStore
from tests.memtrace_collector.graph.build import GRAPH, facts, operation

ADDED = operation("t/c", "create", 1, outputs=["mem:s:1@a"])
END = LogPosition(1, 9)


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresFactStore]:
    store = PostgresFactStore(postgres_url)
    yield store
    store.close()


@pytest.mark.fault("F15", "F31")
@pytest.mark.parametrize(
    "wrong",
    [
        SpanFacts(operation=structs.replace(ADDED, end_ns=1 << 64)),
        SpanFacts(operation=structs.replace(ADDED, span_id="abcd")),
        SpanFacts(operation=structs.replace(ADDED, sequence=Sequence("p", 1 << 70))),
        SpanFacts(values=(Value(graph_id=GRAPH, ref="msg:\ud800@a", content="x"),)),
        SpanFacts(flags=(Flag(trace_id="aa", origin="x", at_ns=1 << 65),)),
    ],
    ids=["time", "span", "number", "surrogate", "flag"],
)
def test_a_fact_that_fits_no_row_is_bad_data_and_nothing_of_its_batch_is_kept(
    store: PostgresFactStore, wrong: SpanFacts
) -> None:
    good = structs.replace(ADDED, span_id="ab" * 8)
    batch = [(LogPosition(1, n), item) for n, item in enumerate([*facts(good), wrong])]
    with pytest.raises(BAD_DATA):
        store.apply(batch, END)
    assert store.graphs() == [] and store.cursor() == START
    store.apply(batch[:1], END)
    assert store.size(GRAPH) == 1


@pytest.mark.fault("F31")
def test_names_may_be_longer_than_an_index_takes(store: PostgresFactStore) -> None:
    long = "x\x00é" * 4_000
    item = structs.replace(
        ADDED,
        graph_id=long,
        outputs=(f"mem:{long}@a",),
        inputs=(f"msg:{long}@b",),
        response_id=long,
        conversation_id=long,
        sequence=Sequence(long, 1),
    )
    said = SpanFacts(
        operation=item,
        values=(Value(graph_id=long, ref=f"mem:{long}@a", content=f"tea {'y' * 9_000}"),),
        flags=(Flag(graph_id=long, response_id=long, origin=long),),
    )
    store.apply([(LogPosition(1, 0), said)], END)
    assert list(store.all_operations(long)) == [item]
    assert store.producers(long, [f"mem:{long}@a"]) == {f"mem:{long}@a": [item]}
    assert store.users(long, [f"msg:{long}@b"]) == {f"msg:{long}@b": [item]}
    assert store.response_operations(long) == store.conversation_operations(long) == [item]
    assert store.flags(long) == store.flags_at([f"response:{long}"]) == list(said.flags)
    assert [number.process for number in store.sequence([long])[long]] == [long]
    assert [value.ref for value in store.search_values(long, "tea")] == [f"mem:{long}@a"]
    assert store.search_values(long, "y" * 9_000) and store.changes(None).graph_ids == (long,)


def test_who_reads_a_whole_graph_can_ask_for_more_meanwhile(store: PostgresFactStore) -> None:
    items = [operation(f"t{n}/s", "create", n, outputs=[f"mem:s:{n}@a"]) for n in range(40)]
    store.apply([(LogPosition(1, n), item) for n, item in enumerate(facts(*items))], END)
    reading = [store.all_operations(GRAPH) for _ in range(20)]
    for number in range(40):
        for each in reading:
            assert next(each) == items[number]
        assert store.producers(GRAPH, [f"mem:s:{number}@a"])


def test_texts_are_taken_in_while_nothing_comes_in(
    store: PostgresFactStore, postgres_url: str
) -> None:
    texts = {f"msg:{n}@a": f"tea number {n}" for n in range(2_500)}
    store.apply([(LogPosition(1, 0), item) for item in facts(ADDED, values=texts)], END)
    while store.tidy(0.1):
        pass
    with psycopg.connect(postgres_url) as connection:
        for table, rows in (("unindexed", 0), ("value_text", 2_500)):
            counted = connection.execute(f"SELECT count(*) FROM memtrace.{table}".encode())
            assert counted.fetchone() == (rows,)
    assert [value.ref for value in store.search_values(GRAPH, "1234")] == ["msg:1234@a"]


@pytest.mark.parametrize(
    "query", ["tea", "coffees and the teas", "berlin pizza", "東京 kafé", "no"]
)
def test_texts_of_one_graph_are_ranked_as_in_memory(store: PostgresFactStore, query: str) -> None:
    rng = random.Random(5)
    words = ("tea", "teas", "teapot", "coffee", "and the", "no", "Berlin pizza", "東京都に", "café")
    texts = {f"msg:{n}@a": " ".join(rng.choices(words, k=rng.randrange(1, 30))) for n in range(80)}
    said = facts(ADDED, values=texts)
    store.apply([(LogPosition(1, 0), item) for item in said], END)
    expected = InMemoryFactStore.of(said).search_values(GRAPH, query, limit=50)
    assert [each.ref for each in store.search_values(GRAPH, query, limit=50)] == [
        each.ref for each in expected
    ]


def test_records_whose_keys_are_equal_are_told_apart(store: PostgresFactStore) -> None:
    one, other = "mem:plumless", "mem:buckeroo"
    assert ref_key(f"{one}@a") == ref_key(f"{other}@a")
    refs = (f"{one}@a", f"{other}@a")
    made = [operation(f"t/c{n}", "create", n, outputs=[ref]) for n, ref in enumerate(refs)]
    used = [operation(f"t/u{n}", "update", n + 5, inputs=[ref]) for n, ref in enumerate(refs)]
    store.apply([(LogPosition(1, n), item) for n, item in enumerate(facts(*made, *used))], END)
    assert store.producers(GRAPH, [f"{one}@a"]) == {f"{one}@a": made[:1]}
    assert store.record_writers(GRAPH, [one, other]) == {one: made[:1], other: made[1:]}
    assert store.users(GRAPH, [f"{other}@a"]) == {f"{other}@a": used[1:]}
    assert store.record_users(GRAPH, [one]) == {one: used[:1]}
