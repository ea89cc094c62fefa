"""Connections that break and servers that go away: tried again, nothing lost or doubled."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from memtrace_collector.errors import ConfigError, UnreachableError
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from memtrace_collector.store.postgres.database import Database
from memtrace_collector.store.postgres.facts import PostgresFactStore
from memtrace_collector.store.postgres.facts_schema import FACTS
from memtrace_collector.store.queue import QueuedCase
from tests.memtrace_collector.store.postgres.processes import apply_in_batches, contended
from tests.memtrace_collector.store.postgres.test_together import hashes
from tests.postgres import Cluster

_KILL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.mark.fault("F1", "F12")
def test_batches_whose_connections_are_cut_are_applied_once(postgres_url: str) -> None:
    facts = contended(3)
    store = PostgresFactStore(postgres_url)
    rng = random.Random(1)
    counted: Counter[str] = Counter()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for start in range(0, len(facts), 8):
            cutter = threading.Timer(rng.random() * 0.02, connection.execute, (_KILL,))
            cutter.start()
            counted += apply_in_batches(store, facts[start : start + 8], 8)
            cutter.join()
    assert hashes(store) == hashes(InMemoryFactStore.of(facts))
    assert sum(counted.values()) == len(facts)
    store.close()


@pytest.mark.fault("F1")
@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT])
def test_a_server_that_restarts_in_the_middle_of_batches_loses_nothing(
    own_cluster: Cluster, how: signal.Signals
) -> None:
    facts = contended(5, spans=400)
    store = PostgresFactStore(own_cluster.new_database())
    began = threading.Event()

    def apply() -> None:
        apply_in_batches(store, facts[:100], 10)
        began.set()
        apply_in_batches(store, facts, 10)

    applying = threading.Thread(target=apply)
    applying.start()
    assert began.wait(30)
    own_cluster.stop(how)
    own_cluster.start()
    applying.join(60)
    assert not applying.is_alive()
    assert hashes(store) == hashes(InMemoryFactStore.of(facts))
    store.close()


def test_a_lease_is_taken_once_though_connections_break(postgres_url: str) -> None:
    store = PostgresCaseStore(postgres_url)
    store.announce([QueuedCase(f"c{n}", "aa", "bb", "g") for n in range(20)], (), None, 0)
    taken = []
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for _ in range(20):
            connection.execute(_KILL)
            taken += [lease.case.case_id for lease in store.take("one", 1, 10)]
    assert len(set(taken)) == len(taken) == 20
    store.close()


def test_a_server_that_stays_away_is_named_without_its_password(tmp_path: object) -> None:
    url = f"postgresql://ann:secret@/facts?host={tmp_path}"
    with pytest.raises(UnreachableError, match="facts") as raised:
        Database(url, FACTS, patience_seconds=0)
    assert "secret" not in str(raised.value) and raised.value.exit_code == 3


def test_what_is_no_url_is_refused_without_repeating_it() -> None:
    with pytest.raises(ConfigError) as raised:
        PostgresFactStore("postgresql://ann:secret@[half")
    assert "secret" not in str(raised.value)


def test_a_closed_store_says_so(postgres_url: str) -> None:
    store = PostgresFactStore(postgres_url)
    store.close()
    store.close()
    with pytest.raises(UnreachableError, match="closed"):
        store.graphs()
