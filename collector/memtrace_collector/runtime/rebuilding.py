"""Facts made anew from the log, compared with the live ones, and put in their place."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from memtrace_collector.config import Config
from memtrace_collector.errors import DamagedError
from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.processor.orders import obeying
from memtrace_collector.processor.projector import Projector
from memtrace_collector.runtime.carrying_over import CarriedOver, Scanned, carry_over, scan
from memtrace_collector.runtime.exchange import NEW_FOLDER, exchange, finish_exchange
from memtrace_collector.runtime.fact_writer import sole_writer
from memtrace_collector.runtime.projecting import record_reader
from memtrace_collector.runtime.stores import CASES_FILE, FACTS_FILE, LOG_FOLDER
from memtrace_collector.store.base import FactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore

_DAY_NS = 86_400 * 1_000_000_000

Progress = Callable[[str, LogPosition], None]
"""Called with what is being done and how far in the log."""


@dataclass(slots=True)
class Rebuilt:
    """What came of it."""

    records: int = 0
    graphs: int = 0
    operations: int = 0
    carried_over: int = 0
    lost_segments: int = 0
    """Taken away by retention, with no live store to carry over from."""
    lost_graphs: list[str] = field(default_factory=list)
    """Which the live store could not give, in part or in whole."""
    differing: list[str] = field(default_factory=list)
    """Graphs whose hash is another than in the live store, or that only one of them has."""
    old_damage: str = ""
    """What is wrong with the live store; empty: nothing."""

    @property
    def is_equal(self) -> bool:
        return not (self.differing or self.old_damage or self.lost_graphs or self.lost_segments)


def judge_again(folder: Path) -> int:
    """Drop what rules concluded and the queue: the flagged answers are looked at anew, and keep
    their ids. How many verdicts went; the caller owns the folder."""
    with contextlib.closing(SqliteCaseStore(folder / CASES_FILE)) as cases:
        return cases.forget_judged("rules")


def rebuild(folder: Path, config: Config, progress: Progress, *, swap: bool = True) -> Rebuilt:
    """Make the facts of a folder anew; the caller owns the folder.

    Args:
        folder: the data folder.
        config: how spans are read.
        progress: is told what happens.
        swap: put the new facts in the place of the old ones; where they differ, the old ones
            are kept in ``before-rebuild``.

    Raises:
        StoreInUseError: another process goes on writing the facts.
        OSError: the folder cannot be written.
    """
    with sole_writer(folder):
        return _rebuild(folder, config, progress, swap)


def _rebuild(folder: Path, config: Config, progress: Progress, swap: bool) -> Rebuilt:
    finish_exchange(folder)
    new_folder = folder / NEW_FOLDER
    shutil.rmtree(new_folder, ignore_errors=True)
    new_folder.mkdir(mode=0o700)
    scanned = scan(folder / LOG_FOLDER, lambda at: progress("reading", at))
    result = Rebuilt(records=scanned.records)
    with contextlib.closing(SqliteFactStore(new_folder / FACTS_FILE)) as new:
        _project(folder / LOG_FOLDER, new, config, progress)
        _from_old(folder, new, scanned, config, progress, result)
        summaries = [each for tenant in _tenants(new, scanned) for each in _graphs(new, tenant)]
        result.graphs = len(summaries)
        result.operations = sum(operations for _, operations in summaries)
    if not swap:
        shutil.rmtree(new_folder)
        return result
    exchange(folder, keep_old=not result.is_equal)
    return result


def _project(log_folder: Path, new: SqliteFactStore, config: Config, progress: Progress) -> None:
    projector = Projector(log_folder, new, record_reader(config), obey=obeying(new))
    batch_by_batch = threading.Event()
    batch_by_batch.set()
    while projector.run_once(batch_by_batch):
        progress("projecting", new.cursor())


def _from_old(
    folder: Path,
    new: SqliteFactStore,
    scanned: Scanned,
    config: Config,
    progress: Progress,
    result: Rebuilt,
) -> None:
    """Carry over what only the live store has, and compare; its damage is reported."""
    unreadable, now_ns = scanned.unreadable, time.time_ns()
    try:
        with contextlib.closing(_opened(folder)) as old:
            _project(folder / LOG_FOLDER, old, config, progress)  # what it had not come to
            tenants = _tenants(old, scanned)
            carried = CarriedOver()
            if unreadable:
                carried = carry_over(old, new, tenants, unreadable)
            result.carried_over = carried.operations
            result.lost_graphs = carried.lost
            for store in (old, new):
                _expire_values(store, config, now_ns)
            result.differing = _differing(old, new, tenants)
    except (DamagedError, sqlite3.DatabaseError) as error:
        result.old_damage = str(error)
        result.lost_segments = unreadable.beginning.segment


def _expire_values(store: FactStore, config: Config, now_ns: int) -> None:
    """As of one moment in both stores: the log may hold values that have had their time."""
    if config.retention.values_days:
        store.expire_values(now_ns - int(config.retention.values_days * _DAY_NS))


def _opened(folder: Path) -> SqliteFactStore:
    path = folder / FACTS_FILE
    if not path.exists() or not path.stat().st_size:
        raise DamagedError(f"{path} is not there, or empty")
    return SqliteFactStore(path)


def _tenants(store: SqliteFactStore, scanned: Scanned) -> list[str]:
    return sorted({DEFAULT_TENANT, *scanned.tenants, *store.tenants()})


def _graphs(store: FactStore, tenant: str) -> list[tuple[str, int]]:
    return [(item.graph_id, item.operations) for item in store.for_tenant(tenant).graphs()]


def _differing(old: FactStore, new: FactStore, tenants: Iterable[str]) -> list[str]:
    found: list[str] = []
    for tenant in tenants:
        before, after = old.for_tenant(tenant), new.for_tenant(tenant)
        names = {item.graph_id for store in (before, after) for item in store.graphs()}
        found += [
            name for name in sorted(names) if before.graph_hash(name) != after.graph_hash(name)
        ]
    return found


def position_bytes(log_folder: Path, position: LogPosition) -> int:
    """How many bytes of the log lie before a place, for telling progress."""
    if position == START:
        return 0
    sizes = {path.stem: path.stat().st_size for path in log_folder.glob("*.log")}
    whole = sum(size for stem, size in sizes.items() if int(stem) < position.segment)
    return whole + position.offset
