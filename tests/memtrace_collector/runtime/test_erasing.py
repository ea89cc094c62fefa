"""What is erased is nowhere in the folder; what is not, is as it was."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.config import Config
from memtrace_collector.errors import UnreachableError
from memtrace_collector.log import files
from memtrace_collector.log.format import Encoding, LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import Entry, read
from memtrace_collector.otlp.json_form import to_json
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime import erasing
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.erasing import NOTE_FILE
from memtrace_collector.store.base import OutboxEntry
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_collector.telemetry.metrics import NULL_METRICS
from tests.faults.volatile_disk import PowerCut, VolatileDisk
from tests.memtrace_collector.processor.spans import memory_span, plain_span, request

GONE, KEPT = "user:erased-one", "user:kept-one"
SECRET = "the allergy is against macadamia nuts"
OTHERS = "the dog is called Bello and barks"


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[DataFolder]:
    data = DataFolder(folder, Config(store=str(folder)), NULL_METRICS)
    with contextlib.closing(data):
        yield data


def turn(number: int, graph: str, text: str) -> Any:
    """One trace: the graph's operations, and a span of the library around them."""
    ref = f"msg:{graph}-{number}@digest{number}"
    return request(
        memory_span(
            number, 1, "ingest", graph=graph, outputs=[ref], values={ref: f"{text} {number}"}
        ),
        memory_span(number, 2, "retrieve", graph=graph, inputs=[ref], delivered=[ref]),
        plain_span(number, 3, prompt=f"somebody wrote: {text} {number}"),
    )


def mixed_turn(number: int) -> Any:
    """One trace in which both graphs have operations."""
    gone, kept = f"msg:gone-{number}@x", f"msg:kept-{number}@x"
    return request(
        memory_span(number, 1, "ingest", graph=GONE, outputs=[gone], values={gone: SECRET}),
        memory_span(number, 2, "ingest", graph=KEPT, outputs=[kept], values={kept: OTHERS}),
        plain_span(number, 3, prompt="both are in this trace"),
    )


def append(
    data: DataFolder, message: Any, tenant: str = "default", encoding: Encoding = "protobuf"
) -> None:
    body = (
        json.dumps(to_json(message), ensure_ascii=False, indent=1).encode()
        if encoding == "json"
        else message.SerializeToString()
    )
    record = LogRecord(tenant, 1_790_000_000_000_000_000, "traces", encoding, body)
    data.log.append(record).result(20)


def fill(data: DataFolder) -> None:
    for number in range(1, 4):
        append(data, turn(number, GONE, SECRET))
        append(data, turn(number + 100, KEPT, OTHERS))
    append(data, turn(4, GONE, SECRET), encoding="json")
    append(data, mixed_turn(50))
    append(data, request(plain_span(2, 9, prompt=f"another library: {SECRET}")))
    both = turn(5, GONE, SECRET)
    both.MergeFrom(turn(105, KEPT, OTHERS))
    append(data, both, encoding="json")
    data.project()
    verdict: dict[str, object] = {
        "id": "c1", "revision": 1, "graph_id": GONE, "created": "2026-01-01T00:00:00Z",
        "stage": "storage", "error_type": "omission", "method": "rules", "quote": SECRET,
    }  # fmt: skip
    entry = OutboxEntry(id="o1", case_id="c1", revision=1, signal="traces", payload=SECRET.encode())
    data.cases.save_verdict(verdict, [entry])


def rebuilt(folder: Path, target: Path) -> dict[str, str]:
    """The hashes of the graphs that the log alone gives."""
    with contextlib.closing(SqliteFactStore(target)) as store:
        Projector(folder / "log", store, RecordReader()).run_once()
        return {item.graph_id: store.graph_hash(item.graph_id) for item in store.graphs()}


def entries(folder: Path) -> list[Entry]:
    return list(read(folder / "log", START))


def everything(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_an_erased_graph_is_in_no_file_and_no_other_graph_changes(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as data:
        fill(data)
        before = entries(tmp_path / "store")
        kept = data.facts.graph_hash(KEPT)
        result = data.erase(GONE)
        assert result["left"] == {}
        assert result["erased"]["operations"] == 11
        assert (result["erased"]["verdicts"], result["erased"]["outbox"]) == (1, 1)
        assert [item.graph_id for item in data.facts.graphs()] == [KEPT]
        assert data.facts.graph_hash(KEPT) == kept
    after = entries(tmp_path / "store")
    assert [entry.position for entry in after[:-1]] == [entry.position for entry in before]
    assert rebuilt(tmp_path / "store", tmp_path / "again.db")[KEPT] == kept
    left = everything(tmp_path / "store")
    for word in (GONE, SECRET, "digest2", "another library"):
        assert word.encode() not in left
    for word in (KEPT, OTHERS, "both are in this trace"):
        assert word.encode() in left


def test_an_erased_tenant_is_in_no_file_and_the_others_are_as_they_were(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as data:
        fill(data)
        append(data, turn(6, GONE, SECRET), tenant="other")
        data.project()
        assert len(data.for_tenant("other").facts.graphs()) == 1
        hashes = {graph: data.facts.graph_hash(graph) for graph in (GONE, KEPT)}
        result = data.for_tenant("other").erase("")
        assert result["left"] == {}
        assert data.for_tenant("other").facts.graphs() == []
        assert {g: data.facts.graph_hash(g) for g in hashes} == hashes
    for entry in entries(tmp_path / "store"):
        assert entry.record.tenant != "other" or SECRET.encode() not in entry.record.body


def test_what_comes_in_afterwards_is_new_and_stays(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as data:
        fill(data)
        data.erase(GONE)
        append(data, turn(1, GONE, SECRET))
        data.project()
        assert len(list(data.facts.all_operations(GONE))) == 2
        live = data.facts.graph_hash(GONE)
    assert rebuilt(tmp_path / "store", tmp_path / "again.db")[GONE] == live


def test_erasing_twice_finds_nothing_the_second_time(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as data:
        fill(data)
        data.erase(GONE)
        result = data.erase(GONE)
    assert result["left"] == {}
    assert not any(result["erased"].values())


class Killed(BaseException):
    """As a SIGKILL would: nobody behind it runs."""


STEPS = (
    (erasing, "erase_record", 1),
    (erasing, "find", 1),
    (erasing, "sync_facts", 1),
    (erasing, "rewrite_segment", 1),
    (erasing, "rewrite_segment", 2),
    (erasing, "rewrite_segment", 3),
    (erasing, "carried_out", 1),
    (erasing, "search", 1),
    (files, "remove", 1),
    (files, "replace", 2),
    (files, "replace", 5),
)
"""What is called for the how manieth time when the process dies."""


@pytest.mark.fault("F1")
@pytest.mark.parametrize(("module", "name", "call"), STEPS)
def test_an_erasure_that_was_killed_at_any_step_is_finished_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, call: int
) -> None:
    real, calls = getattr(module, name), []

    def dying(*args: Any, **named: Any) -> Any:
        calls.append(name)
        if len(calls) == call:
            raise Killed
        return real(*args, **named)

    with opened(tmp_path / "store") as data:
        fill(data)
        append(data, turn(7, GONE, SECRET))
        data.log.append(LogRecord("default", 1, "control", "json", b'{"later": 1}')).result(20)
        append(data, turn(2, GONE, SECRET + " and again"))
        kept = data.facts.graph_hash(KEPT)
        with monkeypatch.context() as patched:
            patched.setattr(module, name, dying)
            with pytest.raises(Killed):
                data.erase(GONE)
    with opened(tmp_path / "store") as data:
        result = data.eraser.resume()
        assert result is not None
        assert result["left"] == {}
        assert data.facts.graph_hash(KEPT) == kept
        assert data.eraser.resume() is None
    assert not (tmp_path / "store" / "log" / NOTE_FILE).exists()
    own = [e for e in entries(tmp_path / "store") if e.record.tenant == "default"]
    assert not any(SECRET.encode() in entry.record.body for entry in own)
    assert not any(GONE.encode() in entry.record.body for entry in own)


@pytest.mark.fault("F5")
@pytest.mark.parametrize("seed", range(6))
def test_an_erasure_in_which_the_power_went_is_finished_or_never_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Facts fall back to what was synced last, the log to any part of what was not; values and
    cases are synced with each commit."""
    chance = random.Random(seed)
    store, again = tmp_path / "store", tmp_path / "again"
    with opened(store) as data:
        fill(data)
        kept = data.facts.graph_hash(KEPT)
    synced = _copied(store, tmp_path, "before")

    def sync(folder: Path) -> None:
        nonlocal synced
        synced = _copied(store, tmp_path, "synced")

    monkeypatch.setattr(erasing, "sync_facts", sync)
    monkeypatch.setattr(erasing, "COMMIT_SECONDS", 0.5)
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    disk = VolatileDisk(store / "log", cut_after=3 + 6 * seed)
    with disk, contextlib.suppress(PowerCut, UnreachableError), opened(store) as data:
        data.erase(GONE)
    again.mkdir()
    for name in ("cases.db", "facts.values.db", *(["facts.db"] if chance.random() < 0.5 else [])):
        _backup(store / name, again / name)
    if not (again / "facts.db").exists():
        _backup(synced, again / "facts.db")
    disk.after(chance, again / "log")
    with opened(again) as data:
        data.project()
        result = data.eraser.resume() or data.erase(GONE)
        assert result["left"] == {}
        assert data.facts.graph_hash(KEPT) == kept
        assert [item.graph_id for item in data.facts.graphs()] == [KEPT]
    assert SECRET.encode() not in everything(again)
    assert GONE.encode() not in everything(again)
    assert rebuilt(again, tmp_path / "rebuilt.db") == {KEPT: kept}


def _copied(store: Path, folder: Path, name: str) -> Path:
    _backup(store / "facts.db", folder / f"{name}.db")
    return folder / f"{name}.db"


def _backup(source: Path, target: Path) -> None:
    with (
        contextlib.closing(sqlite3.connect(source)) as one,
        contextlib.closing(sqlite3.connect(target)) as other,
    ):
        one.backup(other)
