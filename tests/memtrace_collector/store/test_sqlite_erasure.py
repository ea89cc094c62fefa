"""Nothing that was erased or has expired is left in any file of a fact store."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memtrace_collector.graph.facts import Flag, SpanFacts, Value
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store import facts_eraser, facts_rows
from memtrace_collector.store.facts_rows import Stored
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.graph.build import SECOND, operation

GONE, KEPT = "user:gone", "user:kept"
ROUNDS, OPERATIONS = 12, 60


def said(graph_id: str, number: int, rank: random.Random) -> SpanFacts:
    """Rows of all sizes, so that pages split and overflow; each names its graph everywhere."""
    name = graph_id.partition(":")[2]
    item = operation(
        f"{name}{number}/s", "update", number, graph_id=graph_id, tenant="acme",
        inputs=[f"fact:{name}-secret-{number}-{n}@a" for n in range(rank.randrange(1, 60))],
        outputs=[f"mem:{name}-secret-{rank.randrange(50)}@{number}"],
        conversation_id=f"{name}-secret-talk", response_id=f"{name}-secret-{number}",
    )  # fmt: skip
    words = " ".join(f"{name}secretword{rank.randrange(400)}" for _ in range(rank.randrange(200)))
    value = Value(graph_id=graph_id, ref=item.outputs[0], content=words or name, tenant="acme")
    flag = Flag(
        tenant="acme", graph_id=rank.choice(("", graph_id)), trace_id=item.trace_id,
        origin=f"{name}-secret-{number}", expected=f"{name}-secret-answer", at_ns=number,
    )  # fmt: skip
    return SpanFacts(tenant="acme", operation=item, values=(value,), flags=(flag,))


def filled(path: Path, graph_ids: tuple[str, ...]) -> SqliteFactStore:
    """Two graphs that grew side by side, searched and tidied meanwhile."""
    rank = random.Random(3)
    store = SqliteFactStore(path, tenant="acme")
    for part in range(ROUNDS):
        numbers = range(part * OPERATIONS, (part + 1) * OPERATIONS)
        batch = [said(graph_id, n, rank) for n in numbers for graph_id in graph_ids]
        rank.shuffle(batch)
        store.apply([(LogPosition(1, 1), item) for item in batch], LogPosition(1, part))
        store.search_values(graph_ids[part % len(graph_ids)], "secretword7")
    finish(store)
    return store


def finish(store: SqliteFactStore) -> None:
    while store.tidy(1.0) or store.index_text(1.0):
        pass


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.iterdir()):
        yield path.name, path.read_bytes()


def holders(folder: Path, text: str) -> list[str]:
    return [name for name, content in everything(folder) if text.encode() in content]


@pytest.mark.parametrize("is_tenant", [False, True])
def test_no_byte_of_what_was_erased_is_left_in_the_files(tmp_path: Path, is_tenant: bool) -> None:
    with closing(filled(tmp_path / "facts.db", (GONE, KEPT))) as store:
        kept = store.graph_hash(KEPT)
        assert len(holders(tmp_path, "gone-secret")) >= 2 and holders(tmp_path, "gonesecretword")
        erased = store.erase(None if is_tenant else GONE)
        finish(store)
        assert erased.operations == ROUNDS * OPERATIONS * (2 if is_tenant else 1)
        for secret in ("gone-secret", "gonesecretword", GONE):
            assert holders(tmp_path, secret) == []
        assert store.search_values(GONE, "gonesecretword7") == []
        if not is_tenant:
            assert store.graph_hash(KEPT) == kept and holders(tmp_path, "kept-secret")
            assert store.search_values(KEPT, "keptsecretword7")


def test_an_erasure_that_was_broken_off_is_finished_by_another_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, remove, calls = tmp_path / "facts.db", facts_rows.remove, iter((False, False, True))

    def until_the_third(connection: sqlite3.Connection, stored: Iterable[Stored]) -> None:
        if next(calls):
            raise KeyboardInterrupt
        remove(connection, stored)

    with closing(filled(path, (GONE, KEPT))) as store:
        kept = store.graph_hash(KEPT)
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(facts_eraser, "_SLICE", 100)
            patched.setattr(facts_rows, "remove", until_the_third)
            store.erase(GONE)
    with closing(SqliteFactStore(path, tenant="acme")) as again:
        assert again.size(GONE) == len(list(again.all_operations(GONE))) == 12 * 60 - 200
        again.erase(GONE)
        finish(again)
        assert again.size(GONE) == 0 and again.graph_hash(KEPT) == kept
        assert holders(tmp_path, "gone-secret") == holders(tmp_path, "gonesecretword") == []


def test_values_that_expired_leave_no_byte_of_theirs_but_the_facts_stay(tmp_path: Path) -> None:
    with closing(filled(tmp_path / "facts.db", (GONE,))) as store:
        operations = store.size(GONE)
        values = len(store.values(GONE, [o.outputs[0] for o in store.all_operations(GONE)]))
        assert store.expire_values(ROUNDS * OPERATIONS * SECOND) == values > 0
        finish(store)
        assert store.size(GONE) == operations and store.flags(GONE)
        assert store.search_values(GONE, "gonesecretword7") == []
    assert "facts.values.db" not in holders(tmp_path, "gonesecretword")
