"""What a walk back from an answer costs, by how much it finds.

    python -m tests.benchmarks.bench_walk              # 100,000 operations
    python -m tests.benchmarks.bench_walk 1000000      # builds its store once: ten minutes

Operations fall on 1,000 graphs with a strong skew (the first gets a tenth of them); each reads ten
versions of its graph, half of them recent, and writes three, in a trace of its own. Two chains of
10,000, one operation a level: one is a graph of its own, one runs through the largest graph. The
store is written through its own ``apply`` and kept in a cache folder.

``nodes`` are operations and the versions they used. ``whole`` walks end by themselves, the others
where they are told to stop. ``first`` is the first walk after opening the store, the rest are
repeated; milliseconds of processor time, ``wall`` of the clock. The baseline is the same search,
breadth first and without any resolution, in two bare tables keyed by 64-bit digests.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

from memtrace_collector.graph.ancestry import MAX_OPERATIONS, Ancestry, ancestry
from memtrace_collector.graph.facts import Operation, OperationKey, SpanFacts
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.log.position import LogPosition
from memtrace_collector.runtime.garbage import collect_rarely
from memtrace_collector.store import facts_schema
from memtrace_collector.store.sqlite_facts import SqliteFactStore

GRAPHS, READ, WRITTEN = 1_000, 10, 3
CHAIN = 10_000
_BATCH = 2_000
_START_NS = 1_700_000_000_000_000_000
_STARTS = 20
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "memtrace-otel" / "walks"
Found = TypeVar("Found")
_Made = tuple[str, tuple[str, ...], tuple[str, ...]]


class Case(NamedTuple):
    """Answers to walk back from, and how many operations a walk may find."""

    name: str
    starts: tuple[tuple[str, int], ...]
    """Graph and number of the operation."""
    max_operations: int = MAX_OPERATIONS


class Took(NamedTuple):
    """Milliseconds of processor time and of the clock."""

    cpu: float
    wall: float


def made(count: int, seed: int = 7) -> Iterator[_Made]:
    """Graph, references read, references written."""
    rng = random.Random(seed)
    written = [0] * GRAPHS
    chain_every = max(count // 10 // CHAIN, 2)
    for number in range(count):
        graph = int(GRAPHS * rng.random() ** 3)
        so_far = written[graph]
        recent = max(0, so_far - 200)
        read = {
            int(recent + rng.random() * (so_far - recent)) if n % 2 else int(rng.random() * so_far)
            for n in range(READ if so_far else 0)
        }
        written[graph] += WRITTEN
        refs = tuple(_ref(f"{graph}/{each}") for each in read)
        yield f"user:{graph}", refs, tuple(_ref(f"{graph}/{so_far + n}") for n in range(WRITTEN))
        if not number % chain_every and number // chain_every < CHAIN:
            yield from _links("user:0", number // chain_every, "threaded")
    for level in range(CHAIN):
        yield from _links("chain", level, "chain")


def _links(graph_id: str, level: int, name: str) -> Iterator[_Made]:
    before = (_ref(f"{name}/{level - 1}"),) if level else ()
    yield graph_id, before, (_ref(f"{name}/{level}"),)


def _ref(name: str) -> str:
    digest = hashlib.blake2b(name.encode(), digest_size=14).hexdigest()
    return f"mem:bench:{digest[:16]}@{digest[16:]}"


def operation(number: int, item: _Made) -> Operation:
    key = _key(number)
    return Operation(
        graph_id=item[0],
        trace_id=key.trace_id,
        span_id=key.span_id,
        name="update_memory",
        step="update",
        system="bench",
        service="bench",
        start_ns=_START_NS + number * 1_000_000,
        end_ns=_START_NS + number * 1_000_000 + 500_000,
        inputs=item[1],
        outputs=item[2],
        digest_key="plain",
        digest=hashlib.sha256(str(number).encode()).hexdigest(),
    )


def _key(number: int) -> OperationKey:
    digest = hashlib.blake2b(b"%d" % number, digest_size=24).hexdigest()
    return OperationKey(digest[:32], digest[32:])


def build(folder: Path, count: int) -> None:
    """The store and the baseline's tables, unless the folder holds them."""
    done = folder / "done"
    mark = hashlib.sha256(repr((facts_schema.FACTS, Operation.__annotations__)).encode())
    if done.exists() and done.read_text() == mark.hexdigest():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store = SqliteFactStore(folder / "facts.sqlite3")
    bare = Bare(folder / "bare.sqlite3")
    items = enumerate(made(count))
    began = time.perf_counter()
    while batch := list(islice(items, _BATCH)):
        facts = [SpanFacts(operation=operation(*each)) for each in batch]
        at = batch[-1][0]
        store.apply([(LogPosition(1, at), item) for item in facts], LogPosition(1, at + 1))
        bare.insert(batch)
        if at // 100_000 > (at - _BATCH) // 100_000:
            print(f"{at:,} operations after {time.perf_counter() - began:.0f} s", flush=True)
    store.close()
    bare.close()
    done.write_text(mark.hexdigest())


class Bare:
    """Breadth-first search in plain tables: what the lookups alone cost."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -131072;"
            "CREATE TABLE IF NOT EXISTS op(id INTEGER PRIMARY KEY, inputs BLOB);"
            "CREATE TABLE IF NOT EXISTS produced(graph INT, var INT, op INT,"
            " PRIMARY KEY(graph, var, op)) WITHOUT ROWID;"
        )

    def insert(self, batch: list[tuple[int, _Made]]) -> None:
        self._db.execute("BEGIN")
        self._db.executemany(
            "INSERT INTO op VALUES (?,?)",
            [(number, b"".join(map(_packed, item[1]))) for number, item in batch],
        )
        self._db.executemany(
            "INSERT INTO produced VALUES (?,?,?)",
            sorted(
                (_number(graph), *struct.unpack("<q", _packed(ref)), number)
                for number, (graph, _, written) in batch
                for ref in written
            ),
        )
        self._db.execute("COMMIT")

    def walk(self, start: int, graph: int, max_operations: int) -> int:
        """How many operations and versions lie behind ``start``."""
        operations, versions = {start}, set[int]()
        frontier = [start]
        while frontier and len(operations) <= max_operations:
            fresh: set[int] = set()
            for (inputs,) in self._in("SELECT inputs FROM op WHERE id IN", (), frontier):
                fresh.update(struct.unpack(f"<{len(inputs) // 8}q", inputs))
            fresh -= versions
            versions |= fresh
            makers = self._in("SELECT op FROM produced WHERE graph = ? AND var IN", (graph,), fresh)
            frontier = [number for (number,) in makers if number not in operations]
            operations.update(frontier)
        return len(operations) + len(versions)

    def close(self) -> None:
        self._db.close()

    def _in(
        self, statement: str, first: tuple[int, ...], names: Iterable[int]
    ) -> Iterator[tuple[Any]]:
        left = iter(names)
        while part := list(islice(left, 900)):
            marks = ",".join("?" * len(part))
            yield from self._db.execute(f"{statement} ({marks})", (*first, *part))


def _packed(ref: str) -> bytes:
    return hashlib.blake2b(ref.encode(), digest_size=8).digest()


def _number(graph_id: str) -> int:
    name = graph_id.rpartition(":")[2]
    return int(name) if name.isdecimal() else -1


def cases(count: int) -> list[Case]:
    """Which walks are measured."""
    by_graph: dict[str, list[int]] = {}
    chains: dict[str, list[int]] = {}
    for number, (graph_id, _, written) in enumerate(made(count)):
        kind = by_graph if len(written) == WRITTEN else chains
        kind.setdefault(graph_id, []).append(number)
    largest = sorted(by_graph, key=lambda name: -len(by_graph[name]))

    def early(position: int) -> tuple[tuple[str, int], ...]:
        held = [name for name in largest if len(by_graph[name]) > position]
        return tuple((name, by_graph[name][position]) for name in held[:_STARTS])

    def late(graphs: int) -> tuple[tuple[str, int], ...]:
        each = _STARTS // graphs
        return tuple((g, by_graph[g][-1 - 7 * n]) for g in largest[:graphs] for n in range(each))

    def end_of(graph_id: str, levels: int = 0) -> tuple[tuple[str, int], ...]:
        return ((graph_id, chains[graph_id][levels - 1]),) * 5

    return [
        Case("1,000 nodes, whole", early(260)),
        Case("10,000 nodes, whole", early(2_600)),
        Case("1,000 nodes, stopped", late(5), 100),
        Case("10,000 nodes, stopped", late(1), 1_000),
        Case("chain of 1,000", end_of("chain", 1_000)),
        Case("chain of 10,000", end_of("chain")),
        Case("1,000 levels in the largest graph", end_of("user:0", 1_000)),
        Case("10,000 levels in the largest graph", end_of("user:0")),
    ]


def nodes(found: Ancestry) -> int:
    used = {ref for item in found.operations.values() for ref in (*item.inputs, *item.delivered)}
    return len(found.operations) + len(used)


def took(walk: Callable[[], Found]) -> tuple[Took, Found]:
    cpu, wall = time.process_time(), time.perf_counter()
    found = walk()
    return Took((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3), found


def measure(folder: Path, case: Case, repeats: int) -> str:
    """One row of the table."""
    bare = Bare(folder / "bare.sqlite3")
    store = SqliteFactStore(folder / "facts.sqlite3")
    answers = [store.operations(graph, [_key(n)])[_key(n)] for graph, n in case.starts]
    store.close()
    store = SqliteFactStore(folder / "facts.sqlite3")
    limit = case.max_operations
    ours: list[Took] = []
    theirs: list[Took] = []
    sizes: list[tuple[int, int, int]] = []
    for answer, (graph, number) in [*zip(answers, case.starts)] * repeats:
        time_of_ours, found = took(partial(walk, store, answer, limit))
        time_of_theirs, count = took(partial(bare.walk, number, _number(graph), limit))
        ours.append(time_of_ours)
        theirs.append(time_of_theirs)
        sizes.append((nodes(found), len(found.operations), count))
    store.close()
    bare.close()
    return _row(case.name, ours, theirs, sizes)


def walk(store: SqliteFactStore, answer: Operation, max_operations: int) -> Ancestry:
    return ancestry(Lookups(store), answer, max_operations)


def _row(
    name: str, ours: Sequence[Took], theirs: Sequence[Took], sizes: Sequence[tuple[int, int, int]]
) -> str:
    cpu, wall = sorted(each.cpu for each in ours), sorted(each.wall for each in ours)
    middle, base = median(cpu), median(each.cpu for each in theirs)
    size, operations, of_theirs = (median(column) for column in zip(*sizes))
    return (
        f"{name:36}{size:>8.0f}{operations:>8.0f}{ours[0].cpu:>8.1f}"
        f"{middle:>8.1f}{_p95(cpu):>8.1f}{median(wall):>8.1f}{_p95(wall):>8.1f}"
        f"{of_theirs:>12.0f}{base:>7.1f}{middle / base:>7.1f}"
    )


def _p95(ordered: list[float]) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("operations", nargs="?", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, default=_CACHE)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="measure only walks with this in their name")
    given = parser.parse_args()
    folder = given.folder / str(given.operations)
    build(folder, given.operations)
    print(
        f"{'milliseconds':36}{'nodes':>8}{'ops':>8}{'first':>8}{'p50':>8}{'p95':>8}"
        f"{'wall':>8}{'p95':>8}{'bare: nodes':>12}{'p50':>7}{'ratio':>7}"
    )
    found = cases(given.operations)
    collect_rarely()  # as every process does that serves walks
    for case in found:
        if given.only in case.name:
            print(measure(folder, case, given.repeats), flush=True)


if __name__ == "__main__":
    main()
