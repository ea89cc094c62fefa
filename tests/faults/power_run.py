"""Many power cuts under load: senders, the log, retention and the projection, again and again.

The log lives on a :class:`VolatileDisk`. The facts are SQLite's, with ``synchronous=NORMAL``: a
power cut takes them back to the state of an earlier commit, never before the last moment at which
they were synced; here to one that was copied aside. Values are ``FULL``: each commit stays.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.log.errors import LogError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.retention import Limits, LogRetention, Readers
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.faults.volatile_disk import PowerCut, VolatileDisk
from tests.memtrace_collector.processor.spans import memory_span, request

GRAPHS = 5
SEGMENT_BYTES = 6_000
LOG_BYTES = 30_000
CHANGES_BEFORE_CUT = (3, 160)
IN_FLIGHT = 8
DEADLINE = 60.0


class Outcome(NamedTuple):
    """What came of it. ``lost``: acknowledged operations that are not in any graph."""

    cuts: int
    acknowledged: int
    lost: int
    duplicates: int
    differing_graphs: int


def body(number: int) -> bytes:
    """A trace: a message is stored, with its text, and found again."""
    graph = f"user:{number % GRAPHS}"
    ref = f"msg:{number}@a"
    spans = (
        memory_span(
            number, 1, "ingest", graph=graph, outputs=[ref],
            values={ref: f"what was said the {number}th time " + "x" * (number % 700)},
        ),
        memory_span(number, 2, "retrieve", graph=graph, inputs=[ref], delivered=[ref]),
    )  # fmt: skip
    return bytes(request(*spans).SerializeToString())


@dataclass
class _Load:
    """Requests by number: sent until they are acknowledged, some of them twice."""

    acknowledged: set[int] = field(default_factory=set)
    again: list[int] = field(default_factory=list)
    next: int = 1

    def take(self, chance: random.Random) -> int:
        if self.again:
            return self.again.pop()
        if self.acknowledged and chance.random() < 0.05:
            return chance.randrange(1, self.next)
        self.next += 1
        return self.next - 1


class _Facts:
    """The fact store's files, with copies of the facts as of earlier commits."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.path = folder / "facts.db"
        self.lock = threading.Lock()
        self._copies: list[Path] = []
        self._count = 0

    def copy(self) -> None:
        self._count += 1
        target = self.path.with_name(f"copy-{self._count}")
        with (
            contextlib.closing(sqlite3.connect(self.path)) as source,
            contextlib.closing(sqlite3.connect(target)) as copied,
        ):
            source.backup(copied)
        self._copies.append(target)

    def synced(self) -> None:
        """No earlier state comes back."""
        self.copy()
        for older in self._copies[:-1]:
            older.unlink()
        del self._copies[:-1]

    def fall_back(self, chance: random.Random) -> None:
        """What SQLite finds after the cut: now, or an earlier commit."""
        chosen = chance.choice([None, *self._copies])
        if chosen is not None:
            for end in ("-wal", "-shm"):
                self.path.with_name(self.path.name + end).unlink(missing_ok=True)
            shutil.copy(chosen, self.path)
        for copy in self._copies:
            copy.unlink()
        self._copies.clear()
        self.copy()


def run(folder: Path, cuts: int, seed: int, *, disk_loses: int = -1) -> Outcome:
    """Let the power go ``cuts`` times, then compare with a run without any.

    ``disk_loses``: after each start the disk only pretends to sync, from this number of syncs on.
    """
    chance = random.Random(seed)
    load = _Load()
    facts = _Facts(folder / "facts")
    log = folder / "log-0"
    log.mkdir()
    previous = threading.excepthook
    threading.excepthook = _silent_cut
    try:
        for cut in range(cuts):
            image = folder / f"log-{cut + 1}"
            changes = chance.randrange(*CHANGES_BEFORE_CUT)
            disk = VolatileDisk(log, cut_after=changes, loses=disk_loses)
            _until_the_power_goes(disk, image, facts, load, chance)
            facts.fall_back(chance)
            shutil.rmtree(log)
            log = image
    finally:
        threading.excepthook = previous
    return _compared(folder, log, facts, load, cuts)


def _until_the_power_goes(
    disk: VolatileDisk, image: Path, facts: _Facts, load: _Load, chance: random.Random
) -> None:
    with disk:
        with contextlib.suppress(PowerCut):
            log = SegmentLog(disk.folder, segment_bytes=SEGMENT_BYTES)
            _work(log, disk, facts, load, chance)
        disk.after(chance, image)


def _work(
    log: SegmentLog, disk: VolatileDisk, facts: _Facts, load: _Load, chance: random.Random
) -> None:
    store = SqliteFactStore(facts.path)
    stop = threading.Event()
    projecting = threading.Thread(
        target=_project, args=(log.folder, store, facts, stop, random.Random(chance.random()))
    )
    retention = LogRetention(
        log.folder,
        Limits(size=LOG_BYTES),
        end=lambda: log.end,
        readers=lambda: _synced(facts, store),
    )
    projecting.start()
    try:
        _send(log, disk, load, chance, retention)
    finally:
        stop.set()
        projecting.join(DEADLINE)
        store.close()
        log.close()


def _synced(facts: _Facts, store: SqliteFactStore) -> Readers:
    with facts.lock:
        position = store.cursor()
        facts.synced()
        return Readers(position)


def _project(
    folder: Path,
    store: SqliteFactStore,
    facts: _Facts,
    stop: threading.Event,
    chance: random.Random,
) -> None:
    projector = Projector(folder, store, RecordReader())
    while not stop.is_set():
        with facts.lock:
            if projector.run_once(stop) and chance.random() < 0.2:
                facts.copy()
        time.sleep(0.001)


def _send(
    log: SegmentLog, disk: VolatileDisk, load: _Load, chance: random.Random, retention: LogRetention
) -> None:
    waiting: dict[int, Future[LogPosition]] = {}
    deadline = time.monotonic() + DEADLINE
    while not disk.is_off and time.monotonic() < deadline:
        while len(waiting) < IN_FLIGHT:
            number = load.take(chance)
            record = LogRecord("default", time.time_ns(), "traces", "protobuf", body(number))
            with contextlib.suppress(LogError):
                waiting[number] = log.append(record)
        with disk.lock:
            if not disk.is_off:  # what is answered later is answered by nobody
                done = {n for n, future in waiting.items() if future.done()}
                load.acknowledged |= {n for n in done if waiting[n].exception() is None}
                for number in done:
                    waiting.pop(number)
        if chance.random() < 0.02:
            with contextlib.suppress(PowerCut):
                retention.run_once()
        time.sleep(0.0005)
    load.again.extend(waiting)


def _compared(folder: Path, log: Path, facts: _Facts, load: _Load, cuts: int) -> Outcome:
    sent = range(1, load.next)
    with contextlib.closing(SegmentLog(log, fsync=False)) as left:
        _take_all(left, set(sent) - load.acknowledged)
    with contextlib.closing(SqliteFactStore(facts.path)) as store:
        Projector(log, store, RecordReader()).run_once()
        clean_log, clean_facts = folder / "clean", folder / "clean.db"
        with contextlib.closing(SegmentLog(clean_log, fsync=False)) as clean:
            _take_all(clean, set(sent))
        with contextlib.closing(SqliteFactStore(clean_facts)) as expected:
            Projector(clean_log, expected, RecordReader()).run_once()
            graphs = [f"user:{number}" for number in range(GRAPHS)]
            found = [o.key for graph in graphs for o in store.all_operations(graph)]
            wanted = {o.key for graph in graphs for o in expected.all_operations(graph)}
            differing = sum(store.graph_hash(g) != expected.graph_hash(g) for g in graphs)
    return Outcome(
        cuts,
        len(load.acknowledged),
        len(wanted - set(found)),
        len(found) - len(set(found)),
        differing,
    )


def _take_all(log: SegmentLog, numbers: set[int]) -> None:
    futures = [
        log.append(LogRecord("default", 1, "traces", "protobuf", body(number)))
        for number in sorted(numbers)
    ]
    for future in futures:
        future.result(DEADLINE)


def _silent_cut(args: threading.ExceptHookArgs) -> None:
    if not isinstance(args.exc_value, PowerCut):
        threading.__excepthook__(args)
