"""Facts that one process writes and another reads: what the reader may and may not do."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.runtime.gauges import wal_bytes
from memtrace_collector.runtime.stores import FACTS_FILE
from memtrace_collector.store import connections, facts_schema, schema, sqlite_facts
from memtrace_collector.store.sqlite_facts import SqliteFactStore, files_of
from tests.memtrace_collector.graph.build import GRAPH, facts, operation

ADDED = operation("t1/create", "create", 1, outputs=["mem:s:1@a"])
TEXTS = {"mem:s:1@a": "わたしは東京都に住んでいます", "msg:1@a": "tea"}
READ = """
import sys
from pathlib import Path
from memtrace_collector.store.sqlite_facts import SqliteFactStore
store = SqliteFactStore(Path(sys.argv[1]), writable=False)
print(store.size(sys.argv[2]), [item.ref for item in store.search_values(sys.argv[2], sys.argv[3])])
print(store.first_position([item.key for item in store.all_operations(sys.argv[2])]) != {})
store.close()
"""
HOLD = """
import sqlite3, sys
reader = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
reader.execute("BEGIN")
for line in sys.stdin:
    print(*reader.execute("SELECT count(*) FROM operation").fetchone(), flush=True)
"""


def put(store: SqliteFactStore, number: int = 1) -> None:
    batch = [(LogPosition(1, number), item) for item in facts(ADDED, values=TEXTS)]
    store.apply(batch, LogPosition(1, number + 1))


def read_elsewhere(path: Path, text: str) -> list[str]:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path), GRAPH, text],
        env={"PYTHONPATH": f"{root}:{root / 'collector'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_another_process_reads_and_searches_while_the_writer_lives(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    with closing(SqliteFactStore(path)) as store:
        put(store)
        wal = path.with_name("facts.db-wal")
        before = wal.stat().st_size, path.stat().st_size
        assert read_elsewhere(path, "東京") == ["1 ['mem:s:1@a']", "True"]
        after = wal.stat().st_size, path.stat().st_size
        assert before == after and before[0] > 0, "the reader copied nothing of the log"
        put(store, 2)
        assert store.search_values(GRAPH, "tea")[0].ref == "msg:1@a"


def test_a_reader_sees_what_comes_after_it_opened(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    with (
        closing(SqliteFactStore(path)) as store,
        closing(SqliteFactStore(path, writable=False)) as reader,
    ):
        assert reader.graphs() == [] and reader.cursor() == START
        put(store)
        assert reader.size(GRAPH) == 1 and reader.cursor() == LogPosition(1, 2)
        assert [item.ref for item in reader.search_values(GRAPH, "東京")] == ["mem:s:1@a"]


@pytest.mark.fault("F10")
def test_while_another_process_holds_an_old_state_batches_go_on_and_then_the_wal_shrinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_facts, "_CHECKPOINT_PAGES", 32)
    path = tmp_path / FACTS_FILE
    most = 2 * 32 * 4_096

    def wal() -> float:
        (size,) = (each.value for each in wal_bytes(tmp_path) if each.attributes["file"] == "facts")
        return size

    with closing(SqliteFactStore(path)) as store:

        def grow(first: int, last: int) -> None:
            for number in range(first, last):
                item = operation(f"t{number}/create", "create", number, outputs=[f"mem:{number}@a"])
                store.apply([(LogPosition(1, number), SpanFacts(operation=item))], START)

        grow(0, 100)
        before = wal()
        assert 0 < before <= most
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            assert _ask(holder) == 100
            grow(100, 400)
            assert wal() > 2 * most, "the reader is in the way of every checkpoint"
            assert _ask(holder) == 100 and store.size(GRAPH) == 400
        grow(400, 500)
        assert wal() <= most and store.size(GRAPH) == 500


def _ask(holder: subprocess.Popen[str]) -> int:
    """How many operations the process sees that holds a state."""
    assert holder.stdin is not None and holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    return int(holder.stdout.readline())


def test_a_reader_after_the_writer_was_killed_reads_what_it_had_committed(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    root = Path(__file__).parents[3]
    program = (
        "import os, sys; from pathlib import Path\n"
        "from tests.memtrace_collector.store.test_sqlite_readers import put, SqliteFactStore\n"
        "put(SqliteFactStore(Path(sys.argv[1]))); os.kill(os.getpid(), 9)"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env={"PYTHONPATH": f"{root}:{root / 'collector'}"},
        check=False,
    )
    with closing(SqliteFactStore(path, writable=False)) as reader:
        assert reader.size(GRAPH) == 1 and reader.values(GRAPH, TEXTS).keys() == TEXTS.keys()


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    SqliteFactStore(path).close()
    with closing(SqliteFactStore(path, writable=False)) as reader:
        with pytest.raises(WrongUseError, match="reading only"):
            reader.apply([(START, SpanFacts(operation=ADDED))], START)
        with pytest.raises(WrongUseError, match="reading only"):
            reader.erase(GRAPH)
        with pytest.raises(WrongUseError, match="reading only"):
            reader.expire_values(1)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._connections.query("DELETE FROM operation")


def test_a_reader_waits_for_the_writer_to_make_the_files(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    made: list[SqliteFactStore] = []
    writer = threading.Timer(0.1, lambda: made.append(SqliteFactStore(path)))
    writer.start()
    with closing(SqliteFactStore(path, writable=False)) as reader:
        assert reader.graphs() == []
    writer.join()
    made[0].close()


def test_a_reader_says_that_there_is_nothing_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_WAIT_FOR_WRITER_S", 0.05)
    path = tmp_path / "facts.db"
    with pytest.raises(NotFoundError, match=r"facts\.db is not there yet"):
        SqliteFactStore(path, writable=False)
    assert os.listdir(tmp_path) == []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, facts_schema.FACTS[:2], path.name)
    with pytest.raises(NotFoundError, match="still of schema version 2"):
        SqliteFactStore(path, writable=False)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(WrongUseError, match="version 99"):
        SqliteFactStore(path, writable=False)


def test_the_full_text_is_made_again_when_its_file_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    with closing(SqliteFactStore(path)) as store:
        put(store)
        while store.index_text(1.0):
            pass
    files_of(path).text.unlink()
    with closing(SqliteFactStore(path)) as store:
        assert [item.ref for item in store.search_values(GRAPH, "東京")] == ["mem:s:1@a"]


def test_the_full_text_of_other_values_is_not_taken_for_that_of_these(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    with closing(SqliteFactStore(path)) as store:
        put(store)
        assert store.search_values(GRAPH, "tea")
    for file in files_of(path)[:2]:
        file.unlink()
    with closing(SqliteFactStore(path)) as store:
        other = facts(ADDED, values={"msg:9@a": "coffee"})
        store.apply([(START, item) for item in other], START)
        assert store.search_values(GRAPH, "tea") == []
        assert [item.ref for item in store.search_values(GRAPH, "coffee")] == ["msg:9@a"]


def test_when_the_values_are_lost_the_log_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    with closing(SqliteFactStore(path)) as store:
        put(store)
    with closing(SqliteFactStore(path)) as store:
        assert store.cursor() == LogPosition(1, 2)
    files_of(path).values.unlink()
    with closing(SqliteFactStore(path)) as store:
        assert store.cursor() == START and store.size(GRAPH) == 1
        put(store)
        assert store.size(GRAPH) == 1 and store.values(GRAPH, TEXTS).keys() == TEXTS.keys()


def test_a_search_is_complete_for_its_graph_while_the_index_lags(tmp_path: Path) -> None:
    with closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        for number in range(3):
            texts = {f"msg:{number}-{n}@a": f"word{n}" for n in range(700)}
            graph = f"user:{number}"
            items = facts(operation(f"t{number}/c", "ingest", 1, graph_id=graph), values=texts)
            store.apply([(START, item) for item in items], START)
        assert store.index_text(0.0), "there is more than one slice of work"
        for number in (2, 1, 0):
            assert len(store.search_values(f"user:{number}", "word699")) == 1
        assert not store.index_text(10.0)
