"""Several processes over one PostgreSQL database."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from memtrace_collector.graph.facts import Flag, SpanFacts
from memtrace_collector.graph.reader import GraphSummary
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import Change, FactStore
from memtrace_collector.store.erasures import Erasure
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from memtrace_collector.store.postgres.facts import PostgresFactStore
from memtrace_collector.store.queue import QueuedCase
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.store.postgres.processes import (
    apply_in_batches,
    contended,
    project,
    together,
    work,
)

DEADLINE_SECONDS = 30.0


def hashes(store: FactStore) -> dict[GraphSummary, str]:
    return {each: store.graph_hash(each.graph_id) for each in store.graphs()}


@pytest.mark.fault("F11", "F13", "F14")
@pytest.mark.parametrize("seed", range(3))
def test_any_order_and_batching_gives_one_hash_in_every_store(
    postgres_url: str, tmp_path: Path, seed: int
) -> None:
    facts = contended(seed)
    expected = hashes(InMemoryFactStore.of(facts))
    rng = random.Random(seed)
    stores: tuple[FactStore, ...] = (
        SqliteFactStore(tmp_path / "facts.db"),
        PostgresFactStore(postgres_url),
    )
    for store, size in zip(stores, (7, 40)):
        shuffled = rng.sample([*facts, *facts[::3]], len(facts) + len(facts[::3]))
        apply_in_batches(store, shuffled, size)
        assert hashes(store) == expected
        assert store.flags() == InMemoryFactStore.of(facts).flags()
        store.close()


@pytest.mark.fault("F11", "F14")
def test_two_processors_at_once_give_what_one_gives(postgres_url: str) -> None:
    facts = contended(7, spans=400)
    results = together(
        project, [(postgres_url, name, facts[::step], 25) for name, step in (("a", 1), ("b", -1))]
    )
    whole = InMemoryFactStore.of(facts)
    store = PostgresFactStore(postgres_url, log_id="a")
    assert hashes(store) == hashes(whole)
    operations = {item.operation.key for item in facts if item.operation is not None}
    counted = sum((each for each, _ in results), Counter[str]())
    assert counted["added"] == len(operations)
    assert sum(counted.values()) == 2 * len(facts)
    (one, other) = (first for _, first in results)
    assert one | other == operations and not one & other, "each was first in one log"
    assert store.sequence(["p"]) == whole.sequence(["p"])
    store.close()


def test_each_log_has_a_cursor_of_its_own(postgres_url: str) -> None:
    one, other = (PostgresFactStore(postgres_url, log_id=name) for name in "ab")
    cases = [PostgresCaseStore(postgres_url, log_id=name) for name in "ab"]
    for store in (one, cases[0]):
        store.set_cursor("forward", LogPosition(3, 4))
    assert one.cursor("forward") == cases[0].cursor("forward") == LogPosition(3, 4)
    assert other.cursor("forward") == cases[1].cursor("forward") == LogPosition(0, 0)
    one.close()
    other.close()
    for each in cases:
        each.close()


def test_two_workers_never_get_the_same_case(postgres_url: str) -> None:
    store = PostgresCaseStore(postgres_url)
    cases = [QueuedCase(f"c{number:03}", "aa", "bb", "g") for number in range(150)]
    store.announce(cases, (), None, 0)
    taken = together(work, [(postgres_url, name, 1, 10) for name in ("one", "two")])
    assert sorted(taken[0] + taken[1]) == [case.case_id for case in cases]
    assert store.take("three", 5, 10) == [] and len(store.take("three", 11, 10, 999)) == 150
    store.close()


def put_flags(store: PostgresFactStore, origins: list[str]) -> None:
    """A batch for each."""
    for origin in origins:
        flag = Flag(trace_id="aa", origin=origin)
        store.apply([(LogPosition(1, 0), SpanFacts(flags=(flag,)))], LogPosition(1, 1))


def test_who_follows_changes_misses_none_of_several_writers(postgres_url: str) -> None:
    stores = [PostgresFactStore(postgres_url, log_id=name) for name in "abc"]
    writers = [
        threading.Thread(target=put_flags, args=(store, [f"{name}{n}" for n in range(40)]))
        for name, store in zip("ab", stores)
    ]
    for writer in writers:
        writer.start()
    seen: list[str] = []
    since: Change | None = None
    while len(seen) < 80:
        are_done = not any(writer.is_alive() for writer in writers)
        changes = stores[2].changes(since, limit=5)
        seen += [flag.origin for flag in changes.flags]
        since = changes.until
        if are_done and changes.is_all:
            break
    for writer in writers:
        writer.join()
    assert sorted(seen) == sorted(f"{name}{n}" for name in "ab" for n in range(40))
    for store in stores:
        store.close()


def test_a_number_that_is_taken_holds_up_those_behind_it(postgres_url: str) -> None:
    """Else a reader would go past what the slower of two transactions is about to commit."""
    store = PostgresFactStore(postgres_url)
    put_flags(store, ["first"])
    until = store.changes(None).until
    with psycopg.connect(postgres_url) as slow:
        slow.execute("UPDATE memtrace.counter SET value = value + 1 WHERE name = 'change'")
        slow.execute("UPDATE memtrace.flag SET changed = changed + 1")
        quick = threading.Thread(target=put_flags, args=(store, ["second"]))
        quick.start()
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while slow.execute(waits).fetchone() == (0,):
            assert quick.is_alive()
        assert store.changes(until).flags == ()
        slow.commit()
    quick.join(DEADLINE_SECONDS)
    assert [flag.origin for flag in store.changes(until).flags] == ["first", "second"]
    store.close()


def test_an_erasure_waits_for_the_owner_of_every_log_and_then_names_nothing(
    postgres_url: str,
) -> None:
    one, other = (PostgresFactStore(postgres_url, log_id=name) for name in "ab")
    for store in (one, other):
        put_flags(store, ["f"])
    order = Erasure("o1", "default", "user:ada", 5, ("trace:aa",))
    for _ in range(2):
        one.order_erasure(order)
    late = PostgresFactStore(postgres_url, log_id="c")
    assert one.open_erasures() == other.open_erasures() == [order] and not late.open_erasures()
    one.confirm_erasure("o1", {"left": {}})
    assert one.open_erasures() == [] and one.erasure_waits_for("o1") == ["b"]
    one.order_erasure(order._replace(order_id="o1+more"))
    one.confirm_erasure("o1+more", {"left": {"log": 1}})
    other.confirm_erasure("o1+more", {})
    assert one.erasure_waits_for("o1") == ["b", "c"], "and for an order that follows it"
    for log_id in "bc":
        late.leave_out("o1", log_id)
    assert other.erasure_waits_for("o1") == [] == late.open_erasures()
    reported = [("a", {"left": {}}), ("a", {"left": {"log": 1}}), ("b", {}), ("b", {}), ("c", {})]
    assert late.erasure_reports("o1") == reported
    with psycopg.connect(postgres_url) as connection:
        said = connection.execute("SELECT graph_id, targets FROM memtrace.erasure").fetchall()
        assert said == 2 * [(b"", "[]")]
    whole = Erasure("o2", "default", None, 6)
    other.order_erasure(whole)
    assert one.open_erasures() == late.open_erasures() == [whole]
    for store in (one, other, late):
        store.close()
