"""What goes wrong, or is left out, moves its counter: those of losses, by the real stages."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from memtrace_collector.access.authentication import Authenticator
from memtrace_collector.access.guard import Guard
from memtrace_collector.attribution.model import spending
from memtrace_collector.attribution.model.budget import Prices, Usage
from memtrace_collector.config import Config
from memtrace_collector.exporter.delivery import DELIVERED, Delivery
from memtrace_collector.exporter.outbox import OutboxSender
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import segment_path
from memtrace_collector.log.retention import Limits, LogRetention
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor import outgoing
from memtrace_collector.processor.forwarder import Forwarder, Stores
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime import invariant_watch, tenants
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.erasing_together import OrderedErasing
from memtrace_collector.runtime.gauges import wal_bytes
from memtrace_collector.runtime.invariant_flags import InvariantFlags
from memtrace_collector.runtime.invariant_watch import InvariantWatch
from memtrace_collector.runtime.judges import Judges
from memtrace_collector.runtime.tenants import Tenants
from memtrace_collector.runtime.text_indexing import TextIndexing
from memtrace_collector.runtime.upkeep import StoreUpkeep
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.metrics import Exemplar, NullMetrics
from tests.memtrace_collector.attribution.scripts import Script
from tests.memtrace_collector.processor.spans import memory_span, plain_span, request

DEADLINE = 20.0


class Told(NullMetrics):
    """What was counted, by name and the values of the attributes; only what the catalogue has."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(
        self, name: str, value: float, exemplar: Exemplar | None = None, /, **attributes: str
    ) -> None:
        assert attributes.keys() == METRICS[name].attributes.keys()
        self.counts[".".join([name.removeprefix("memtrace."), *attributes.values()])] += value


class Broken:
    """Whatever is asked of it fails, and is to be tried no more."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def fail(self, *_: Any, **__: Any) -> NoReturn:
        self._stop.set()
        raise OSError("the disk is gone")

    def __getattr__(self, name: str) -> Any:
        return self.fail

    def index_text(self, seconds: float) -> bool:
        self.fail()


class Orders:
    def open_erasures(self) -> list[NoReturn]:
        return []


class Takes:
    """A destination."""

    name = "test"
    encodings = ("protobuf", "json")
    longest_text: int | None = None

    def send(self, *_: object) -> Delivery:
        return DELIVERED


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


def append(log: SegmentLog, *messages: Any) -> None:
    for message in messages:
        body = message if isinstance(message, bytes) else message.SerializeToString()
        log.append(LogRecord("default", 1, "traces", "protobuf", body)).result(DEADLINE)


def test_a_failed_pass_of_each_stage_is_counted(
    told: Told, stop: threading.Event, tmp_path: Path
) -> None:
    broken: Any = Broken(stop)
    at_end = {"end": broken.fail, "readers": broken.fail, "metrics": told}
    stages = {
        "log.retention_failures": LogRetention(tmp_path, Limits(1, 1), **at_end),
        "projection.failures": Projector(tmp_path, broken, RecordReader(), metrics=told),
        "text_index.failures": TextIndexing(broken, told),
        "invariants.failures": InvariantWatch(broken, told),
        "erase.failures": OrderedErasing(Orders(), broken, told),
        "forward.failures": Forwarder(
            tmp_path, Stores(broken, broken), RecordReader(), Takes(), metrics=told
        ),
        "outbox.failures": OutboxSender(broken.fail, Takes(), metrics=told),
    }
    for stage in stages.values():
        stop.clear()
        stage.run(stop)
    assert told.counts == dict.fromkeys(stages, 1)


def test_what_the_log_writes_and_cuts_off_is_counted(told: Told, tmp_path: Path) -> None:
    with closing(SegmentLog(tmp_path, fsync=False, metrics=told)) as log:
        append(log, b"one", b"two")
        end = log.end
    assert told.counts["log.records"] == 2 and 1 <= told.counts["log.commits"] <= 2
    assert told.counts["log.written"] == end.offset
    with segment_path(tmp_path, end.segment).open("ab") as file:
        file.write(b"torn")
    SegmentLog(tmp_path, fsync=False, metrics=told).close()
    assert told.counts["log.torn"] == 4


def test_what_is_read_from_the_log_is_counted(told: Told, tmp_path: Path) -> None:
    with closing(SegmentLog(tmp_path, fsync=False)) as log:
        ours = request(memory_span(1, 1, "ingest", outputs=["msg:m/1@a"]))
        append(log, request(plain_span(1, 1)), ours)
        Projector(log.folder, InMemoryFactStore(), RecordReader(), metrics=told).run_once()
    assert (told.counts["projection.records"], told.counts["projection.passed"]) == (2, 1)


def test_what_is_sent_on_otherwise_than_it_came_is_counted(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> NoReturn:
        raise ValueError("a row of the store is damaged")

    monkeypatch.setattr(outgoing, "resolve_sources", damaged)
    span = memory_span(1, 1, "answer", inputs=["mem:a:1@b"], outputs=["ans:1@a"])
    torn = request(memory_span(2, 1, "ingest", outputs=["msg:m/1@a"])).SerializeToString()[:-9]
    store = InMemoryFactStore()
    with closing(SegmentLog(tmp_path, fsync=False)) as log:
        append(log, request(span), request(span), torn)
        Projector(log.folder, store, RecordReader(), metrics=told).run_once()
        stores = Stores(store, store)
        forwarder = Forwarder(log.folder, stores, RecordReader(), Takes(), metrics=told)
        forwarder.run_once()
    assert told.counts["forward.links_failed"] == 1
    assert told.counts["forward.repeated"] == 1
    assert told.counts["forward.unreadable"] == 1
    assert told.counts["projection.quarantined.poison"] == 1


def test_a_text_that_is_shortened_for_a_destination_is_counted(told: Told, tmp_path: Path) -> None:
    class Badger(Takes):
        longest_text = 3_000

    store = InMemoryFactStore()
    with closing(SegmentLog(tmp_path, fsync=False)) as log:
        append(log, request(plain_span(1, 1, said="x" * 3_001), plain_span(1, 2, said="x" * 3_000)))
        stores = Stores(store, store)
        Projector(log.folder, store, RecordReader()).run_once()
        Forwarder(log.folder, stores, RecordReader(), Badger(), metrics=told).run_once()
    assert told.counts["forward.shortened"] == 1


def test_a_request_that_is_sent_in_parts_is_counted(told: Told, tmp_path: Path) -> None:
    class Small(Takes):
        def send(self, signal: str, body: bytes, *_: object) -> Delivery:
            return DELIVERED if len(body) < 500 else Delivery("refused", is_too_large=True)

    spans = [plain_span(1, number, said="x" * 200) for number in range(1, 3)]
    store = InMemoryFactStore()
    with closing(SegmentLog(tmp_path, fsync=False)) as log:
        append(log, request(*spans))
        Projector(log.folder, store, RecordReader()).run_once()
        stores = Stores(store, store)
        Forwarder(log.folder, stores, RecordReader(), Small(), metrics=told).run_once()
    assert told.counts["forward.split.traces"] == 1
    assert told.counts["forward.requests.traces.delivered"] == 2


def test_expired_values_are_counted(told: Told, tmp_path: Path) -> None:
    class Store:
        def expire_values(self, before_ns: int) -> int:
            return 3

        def tidy(self, seconds: float) -> bool:
            return False

    StoreUpkeep(Store(), 1.0, metrics=told)(True)
    assert told.counts == {"values.expired": 3}


def test_graphs_beyond_those_watched_and_answers_flagged_are_counted(
    told: Told, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script()
    _, old = script.remember("My barber is Enzo.")
    script.day(2)
    script.update(old, "My barber is Marco.")
    script.ask("Who is my barber?")
    script.reply("Enzo.", old)
    store = script.store()
    flagging = InvariantFlags(store, ["stale"], lambda *_: None, told)
    watch = InvariantWatch(store, told, report=flagging.flag)
    watch.look(stop)
    assert told.counts["invariants.flagged.stale"] == 1
    assert told.counts["invariants.unwatched"] == 0
    monkeypatch.setattr(invariant_watch, "MAX_GRAPHS", 0)
    watch.look(stop)
    assert told.counts["invariants.unwatched"] == 1


def test_tenants_beyond_those_worked_for_are_counted(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants, "MAX_TENANTS", 1)
    config = Config(store=str(tmp_path))
    with closing(DataFolder(tmp_path, config, told)) as data:
        judges = Judges(config, tmp_path, told)
        everybody = Tenants(data, config, judges, told, lambda: ("acme", "globex", "initech"))
        assert len(everybody.all()) == 1
        everybody.close()
        judges.close()
    assert told.counts["tenants.unattended"] == 2


def test_calls_of_a_model_are_counted_with_what_they_took(told: Told) -> None:
    usage = Usage(prompt=2_000_000, completion=500_000)
    spending.tell(told, usage, Prices(prompt=0.5, completion=2.0).of(2_000_000, 500_000))
    assert told.counts == {
        "model.calls": 1,
        "model.tokens.input": 2_000_000,
        "model.tokens.output": 500_000,
        "model.cost": 2.0,
    }


def test_dropped_payloads_are_counted(told: Told) -> None:
    class Outbox:
        def outbox_forget(self, before_ns: int, limit: int = 1) -> int:
            return 3

    assert OutboxSender(lambda: [Outbox()], Takes(), metrics=told).forget() == 3
    assert told.counts == {"outbox.forgotten": 3}


@pytest.mark.asyncio
async def test_requests_without_a_token_and_a_file_that_cannot_be_read_again_are_counted(
    told: Told, tmp_path: Path
) -> None:
    sent: list[Any] = []

    async def nothing(*_: object) -> NoReturn:
        raise AssertionError("it was let through")

    async def send(message: Any) -> None:
        sent.append(message)

    tokens = token_file(tmp_path)
    known = Authenticator(tokens, metrics=told)
    guard = Guard(nothing, known, metrics=told)
    scope = {"type": "http", "path": "/api/v1/graphs", "headers": [], "client": ("192.0.2.1", 1)}
    await guard(scope, nothing, send)
    assert sent[0]["status"] == 401 and told.counts == {"api.denied": 1}
    tokens.write_text("tokens: [")
    known.reload()
    await guard(scope, nothing, send)
    assert told.counts == {"api.denied": 2, "access.reload_failures": 1}


def test_the_size_of_write_ahead_logs_is_told(tmp_path: Path) -> None:
    facts = [SpanFacts(operation=each) for each in forgotten().operations]
    with closing(SqliteFactStore(tmp_path / "facts.db")) as store:
        store.apply([(LogPosition(1, 1), each) for each in facts], LogPosition(1, 2))
        sizes = {each.attributes["file"]: each.value for each in wal_bytes(tmp_path)}
    assert sizes["facts"] > 0 and set(sizes) <= METRICS["memtrace.store.wal"].attributes["file"]


def token_file(folder: Path) -> Path:
    path = folder / "tokens.yaml"
    path.write_text(f"tokens: {{'sha256:{'0' * 64}': acme}}\n")
    path.chmod(0o600)
    return path


def forgotten() -> Script:
    script = Script()
    script.remember("My barber is Enzo.")
    return script
