"""What it costs to attribute an answer, by the size of its owner's graph.

    python tests/benchmarks/bench_attribution.py                       # two minutes
    python tests/benchmarks/bench_attribution.py --sizes 1000 --cases 8

For each size a graph (see ``owner_graph.py``) is written through the SQLite fact store's own
writer. Then every planted answer is loaded and attributed, with its evidence given, with
evidence searched for, and with neither evidence nor an expected answer. Times are processor
time of this process, so that a busy machine counts less; ``wall`` is the clock. The
baselines are measured in the same run on the same case: ``rows``, reading the case's operations
and values from the store by key and decoding them; ``json``, decoding the same from JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import structs
from owner_graph import GRAPH, Owner, Planted, batches

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.references import named_by
from memtrace_collector.log.position import START
from memtrace_collector.store import facts_reader
from memtrace_collector.store.sqlite_facts import SqliteFactStore

SIZES = (1_000, 10_000, 100_000)
MODES = ("given", "found", "none")


class Took(NamedTuple):
    """Milliseconds of processor time and of the clock."""

    cpu: float
    wall: float


class Sample(NamedTuple):
    """One case: its size, what it took, and what the baselines took."""

    operations: int
    values: int
    characters: int
    load: Took
    attribute: Took
    rows: Took
    json: Took
    right: bool


def timed(run: Callable[[], object]) -> Took:
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return Took((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3)


def build(folder: Path, size: int, cases: int) -> tuple[SqliteFactStore, Owner]:
    store, owner = SqliteFactStore(folder / f"{size}.sqlite"), Owner()
    for batch in batches(owner.facts(size, cases)):
        store.apply(((START, item) for item in batch), START)
    return store, owner


def sample(store: SqliteFactStore, planted: Planted, mode: str) -> Sample:
    flag = planted.flag if mode != "none" else structs.replace(planted.flag, expected=None)
    given = mode == "given"
    found: list[Case] = []
    verdicts: list[str] = []
    load = timed(lambda: found.append(load_case(store, planted.answer, flag, evidence_given=given)))
    case = found[0]
    judge = timed(lambda: verdicts.append(attribute(case).error_type))
    operations = list(case.operations)
    refs = {ref for item in case.operations.values() for ref in named_by(item)} & set(case.texts)
    facts_reader.decoded.cache_clear()
    rows = timed(lambda: (store.operations(GRAPH, operations), store.values(GRAPH, refs)))
    packed = [json.dumps(structs.asdict(item)) for item in case.operations.values()]
    packed += [json.dumps(text) for text in case.texts.values()]
    decoding = timed(lambda: [json.loads(item) for item in packed])
    return Sample(
        operations=len(case.operations),
        values=len(case.texts),
        characters=sum(map(len, case.texts.values())),
        load=load,
        attribute=judge,
        rows=rows,
        json=decoding,
        right=verdicts == [planted.kind],
    )


def middle(values: Iterable[float]) -> float:
    return statistics.median(values)


def percentiles(values: list[float]) -> str:
    values.sort()
    at = [values[min(len(values) - 1, int(len(values) * part))] for part in (0.5, 0.99)]
    return "".join(f"{value:8.1f}" for value in at)


def report(mode: str, samples: list[Sample]) -> None:
    print(
        f"{mode:6}"
        f"{middle(s.operations for s in samples):7.0f}{middle(s.values for s in samples):7.0f}"
        f"{middle(s.characters for s in samples) / 1e3:7.0f}"
        f"{percentiles([s.load.cpu for s in samples])}"
        f"{percentiles([s.attribute.cpu for s in samples])}"
        f"{middle(s.load.wall for s in samples):8.1f}"
        f"{middle(s.attribute.wall for s in samples):8.1f}"
        f"{middle(s.load.cpu / s.rows.cpu for s in samples):8.1f}"
        f"{middle(s.attribute.cpu / s.json.cpu for s in samples):8.1f}"
        f"{sum(s.right for s in samples):6d}/{len(samples)}",
        flush=True,
    )


def bench(folder: Path, size: int, cases: int) -> None:
    started = time.process_time()
    store, owner = build(folder, size, cases)
    bytes_on_disk = sum(item.stat().st_size for item in folder.glob(f"{size}.*"))
    print(
        f"\n{owner.operations:,} operations, {owner.values:,} values,"
        f" {bytes_on_disk / 1e6:.0f} MB, written in {time.process_time() - started:.0f} s"
    )
    print(
        f"{'':6}{'size of the case':^21}{'load, ms':^16}{'attribute, ms':^16}{'wall, ms':^16}"
        f"{'ratio to baseline':^18}"
    )
    print(
        f"{'':6}{'ops':>7}{'values':>7}{'kchar':>7}{'p50':>8}{'p99':>8}{'p50':>8}{'p99':>8}"
        f"{'load':>8}{'attr':>8}{'rows':>8}{'json':>8}{'as planted':>12}"
    )
    sample(store, owner.planted[0], "given")
    for mode in MODES:
        report(mode, [sample(store, planted, mode) for planted in owner.planted])
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--cases", type=int, default=24, help="planted answers per graph")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            bench(Path(folder), size, min(options.cases, size // 100))


if __name__ == "__main__":
    main()
