"""What it costs to keep operations, as the store grows.

    python -m tests.benchmarks.bench_store 1000000      # half an hour for ten million

Operations with 10 inputs and 3 outputs, each in a trace of its own, go in batches into the
SQLite fact store through its ``apply``. There are 1,000 graphs, of which the first gets a tenth
of all; half of what an operation reads is what its graph made last, the other half comes from
all of its history. The same goes in the same run, as far as ``--baseline`` says, into the
plain form: one row for the operation, one for each input and each output, 64-bit keys, two
indexes.

Each line is the stretch since the line before it. ``cpu`` and ``wall`` are microseconds per
operation, ``worst`` the longest batch with its commit and checkpoint in milliseconds, ``written``
what went to disk, ``file`` the bytes of the files per operation. Then: lookups by key from the
same store, from empty caches of this process (``cold``; the system still caches the file) and
again (``warm``).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from memtrace_collector.graph.facts import Operation, SpanFacts
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store import facts_reader
from memtrace_collector.store.sqlite_facts import SqliteFactStore, files_of

GRAPHS = 1_000
INPUTS, OUTPUTS = 10, 3
RECENT = 200
MARKS = (10_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000)
_START_NS = 1_700_000_000 * 10**9
_MASK = (1 << 64) - 1
_Batch = list[Operation]
_Ask = Callable[[SqliteFactStore], object]


class Load:
    """Operations without end, the same for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)  # repeatable, not secret
        self._made = [0] * GRAPHS
        self.count = 0

    def batch(self, size: int) -> _Batch:
        return [self._operation() for _ in range(size)]

    def _operation(self) -> Operation:
        graph = int(GRAPHS * self._random.random() ** 3)
        made = self._made[graph]
        self._made[graph] += OUTPUTS
        self.count += 1
        start_ns = _START_NS + self.count * 100_000
        return Operation(
            graph_id=f"user:{graph}",
            trace_id=f"{_mixed(1, self.count):016x}{self.count:016x}",
            span_id=f"{_mixed(2, self.count):016x}",
            name="update_memory",
            step="update",
            start_ns=start_ns,
            end_ns=start_ns + 5_000_000,
            system="bench",
            inputs=self._inputs(graph, made),
            outputs=tuple(_ref(graph, serial) for serial in range(made, made + OUTPUTS)),
            digest=f"{_mixed(3, self.count):016x}" * 4,
        )

    def _inputs(self, graph: int, made: int) -> tuple[str, ...]:
        if not made:
            return ()
        recent = max(0, made - RECENT)
        chance = self._random.random
        serials = {
            int(recent + chance() * (made - recent)) if n % 2 else int(chance() * made)
            for n in range(INPUTS)
        }
        return tuple(_ref(graph, serial) for serial in serials)


class Stretch(NamedTuple):
    """What a stretch of batches took: seconds, bytes."""

    operations: int
    cpu: float
    wall: float
    worst: float
    written: int
    size: int

    def line(self, name: str, total: int) -> str:
        return (
            f"{name:10}{total:>12,}{self.cpu / self.operations * 1e6:>9.1f}"
            f"{self.wall / self.operations * 1e6:>9.1f}{self.worst * 1e3:>9.0f}"
            f"{self.written / self.operations:>10.0f}{self.size / total:>8.0f}"
        )


class Plain:
    """The named baseline: what a first draft of such a store looks like."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._encode = msgspec.msgpack.Encoder().encode
        self._connection = sqlite3.connect(folder / "plain.db", isolation_level=None)
        self._connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -131072;"
            "PRAGMA wal_autocheckpoint = 16384;"
            "CREATE TABLE operation(id INTEGER PRIMARY KEY, key BLOB, body BLOB);"
            "CREATE UNIQUE INDEX operation_key ON operation(key);"
            "CREATE TABLE produced(ref INT, operation INT, PRIMARY KEY(ref, operation))"
            " WITHOUT ROWID;"
            "CREATE TABLE used(ref INT, operation INT, PRIMARY KEY(ref, operation)) WITHOUT ROWID"
        )
        self._count = 0

    def put(self, batch: _Batch) -> None:
        execute = self._connection.executemany
        numbered = list(enumerate(batch, self._count))
        self._count += len(batch)
        self._connection.execute("BEGIN")
        execute(
            "INSERT OR IGNORE INTO operation VALUES (?,?,?)",
            [
                (n, bytes.fromhex(item.trace_id + item.span_id), self._encode(item))
                for n, item in numbered
            ],
        )
        for table, field in (("produced", "outputs"), ("used", "inputs")):
            execute(
                f"INSERT OR IGNORE INTO {table} VALUES (?,?)",
                [(_digest(ref), n) for n, item in numbered for ref in getattr(item, field)],
            )
        self._connection.execute("COMMIT")

    def size(self) -> int:
        return (self.folder / "plain.db").stat().st_size

    def close(self) -> None:
        self._connection.close()


class Ours:
    """The store as the projector uses it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "facts.db"
        self.store = SqliteFactStore(self.path)
        self._offset = 0

    def put(self, batch: _Batch) -> None:
        facts = []
        for item in batch:
            self._offset += 1
            facts.append((LogPosition(1, self._offset), SpanFacts(operation=item)))
        self.store.apply(facts, LogPosition(1, self._offset + 1))

    def size(self) -> int:
        return sum(path.stat().st_size for path in files_of(self.path) if path.exists())

    def close(self) -> None:
        self.store.close()


def stretches(store: Plain | Ours, until: int, batch_size: int) -> Iterator[tuple[int, Stretch]]:
    """A stretch up to each mark; making the operations is not counted."""
    load = Load()
    for mark in sorted({mark for mark in MARKS if mark < until} | {until}):
        first, cpu, wall, worst, written = load.count, 0.0, 0.0, 0.0, _written()
        while load.count < mark:
            batch = load.batch(min(batch_size, mark - load.count))
            cpu_before, wall_before = time.process_time(), time.perf_counter()
            store.put(batch)
            cpu += time.process_time() - cpu_before
            took = time.perf_counter() - wall_before
            wall += took
            worst = max(worst, took)
        size = store.size()
        yield mark, Stretch(mark - first, cpu, wall, worst, _written() - written, size)


def measure(name: str, store: Plain | Ours, until: int, batch_size: int) -> dict[int, Stretch]:
    found = {}
    for mark, stretch in stretches(store, until, batch_size):
        print(stretch.line(name, mark), flush=True)
        found[mark] = stretch
    return found


def lookups(store: SqliteFactStore, until: int) -> None:
    """Backward, as a walk asks: who made these references, and their operations."""
    by_graph: dict[str, list[Operation]] = {}
    for item in Load().batch(min(until, 20_000)):
        by_graph.setdefault(item.graph_id, []).append(item)
    graph_id, items = max(by_graph.items(), key=lambda each: len(each[1]))
    refs = [ref for item in items for ref in item.inputs][:10_000]
    some = [item.key for item in items][:1_000]
    record = refs[0].rpartition("@")[0]
    print(f"\nIn a graph of {store.size(graph_id):,} operations, milliseconds of the clock:")
    _look("producers of 10 references", store, lambda s: s.producers(graph_id, refs[:10]))
    _look("producers of 1,000", store, lambda s: s.producers(graph_id, refs[:1_000]))
    _look(f"producers of {len(refs):,}", store, lambda s: s.producers(graph_id, refs))
    _look(f"operations of {len(some):,} keys", store, lambda s: s.operations(graph_id, some))
    _look("who uses a record", store, lambda s: s.record_users(graph_id, [record]))
    cpu, worst, has_more = time.process_time(), 0.0, True
    while has_more:
        start = time.perf_counter()
        has_more = store.tidy(0.0)
        worst = max(worst, time.perf_counter() - start)
    spent = time.process_time() - cpu
    print(
        f"  long graphs indexed in {spent:.1f} s of processor, at most {worst * 1e3:.0f} ms a time"
    )
    _look("who uses a record", store, lambda s: s.record_users(graph_id, [record]))


def _look(name: str, store: SqliteFactStore, ask: _Ask) -> None:
    facts_reader.decoded.cache_clear()
    fresh = SqliteFactStore(store.files.facts, writable=False)
    cold, warm = _took(ask, fresh), _took(ask, fresh)
    fresh.close()
    print(f"  {name:30} cold {cold:8.2f}   warm {warm:8.2f}", flush=True)


def _took(ask: _Ask, store: SqliteFactStore) -> float:
    start = time.perf_counter()
    ask(store)
    return (time.perf_counter() - start) * 1e3


def _mixed(salt: int, number: int) -> int:
    """Splitmix64: looks random, and is the same in every run."""
    mixed = ((salt << 40 | number) * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    return mixed ^ (mixed >> 27)


def _ref(graph: int, serial: int) -> str:
    return f"mem:bench:{_mixed(graph + 10, serial):016x}@{_mixed(graph + 5_000, serial):012x}"


def _digest(name: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True
    )


def _written() -> int:
    """Bytes that this process sent to disk."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("operations", type=int, nargs="?", default=100_000)
    parser.add_argument("--batch", type=int, default=5_000)
    parser.add_argument(
        "--baseline", type=int, default=250_000, help="operations for the plain form"
    )
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, batches of {options.batch}")
    print(f"{'':10}{'operations':>12}{'cpu':>9}{'wall':>9}{'worst':>9}{'written':>10}{'file':>8}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        baseline = Plain(Path(folder))
        plain = measure("plain", baseline, options.baseline, options.batch)
        baseline.close()
        ours = Ours(Path(folder))
        store = measure("store", ours, options.operations, options.batch)
        for mark in sorted(plain.keys() & store.keys())[-1:]:
            ratio = plain[mark].cpu / store[mark].cpu
            print(f"up to {mark:,} the plain form takes {ratio:.1f} times our processor time")
        lookups(ours.store, options.operations)
        ours.close()


if __name__ == "__main__":
    main()
