"""Tables are made and brought up to date by whoever comes first."""

from __future__ import annotations

import psycopg
import pytest

from memtrace_collector.errors import WrongUseError
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.postgres.cases import PostgresCaseStore
from memtrace_collector.store.postgres.cases_schema import CASES
from memtrace_collector.store.postgres.database import Database
from memtrace_collector.store.postgres.facts import PostgresFactStore
from memtrace_collector.store.postgres.facts_schema import FACTS
from memtrace_collector.store.postgres.migrations import Part
from tests.memtrace_collector.graph.build import GRAPH, facts, operation
from tests.memtrace_collector.store.postgres.processes import open_and_close, together
from tests.postgres import Cluster

FIRST = "CREATE TABLE thing(name TEXT PRIMARY KEY); INSERT INTO thing VALUES ('old')"
SECOND = "ALTER TABLE thing ADD COLUMN age INT NOT NULL DEFAULT 7"


@pytest.fixture
def url(postgres_cluster: Cluster) -> str:
    return postgres_cluster.new_database()


@pytest.mark.fault("F9")
def test_older_tables_are_brought_up_to_date_and_keep_their_rows(url: str) -> None:
    Database(url, Part("things", (FIRST,))).close()
    for _ in range(2):
        newer = Database(url, Part("things", (FIRST, SECOND)))
        assert newer.query("SELECT name, age FROM thing") == [("old", 7)]
        newer.close()


@pytest.mark.fault("F9")
@pytest.mark.parametrize("part", [FACTS, CASES], ids=lambda part: part.name)
def test_every_older_version_becomes_the_newest(postgres_cluster: Cluster, part: Part) -> None:
    for version in range(len(part.scripts)):
        url = postgres_cluster.new_database()
        Database(url, Part(part.name, part.scripts[:version])).close()
        assert open_and_close(url) == []


@pytest.mark.fault("F9")
def test_tables_of_a_newer_release_are_refused(url: str) -> None:
    Database(url, Part("facts", (*FACTS.scripts, SECOND.replace("thing", "graph")))).close()
    with pytest.raises(WrongUseError, match="newer"):
        PostgresFactStore(url)


@pytest.mark.fault("F9")
def test_a_migration_that_fails_leaves_nothing_behind(url: str) -> None:
    with pytest.raises(psycopg.errors.SyntaxError):
        Database(url, Part("things", (FIRST, "NOT SQL")))
    database = Database(url, Part("things", (FIRST,)))
    assert database.query("SELECT name FROM thing") == [("old",)]
    database.close()


def test_processes_that_start_at_once_wait_for_one_of_them(url: str) -> None:
    assert together(open_and_close, [(url,)] * 3) == [[]] * 3


def test_who_may_create_nothing_can_use_what_is_there(url: str, postgres_cluster: Cluster) -> None:
    PostgresCaseStore(url).close()
    store = PostgresFactStore(url)
    created = operation("t/c", "create", 1, outputs=["mem:s:1@a"])
    store.apply([(LogPosition(1, 0), item) for item in facts(created)], LogPosition(1, 1))
    store.close()
    database = url.partition("?")[0].rpartition("/")[2]
    for statement in (
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA memtrace TO reader",
        "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA memtrace TO reader",
        f"REVOKE CREATE ON DATABASE {database} FROM PUBLIC",
    ):
        postgres_cluster.execute(statement, database)
    reader = PostgresFactStore(url.replace("test@", "reader@"))
    assert list(reader.all_operations(GRAPH)) == [created]
    reader.close()
