"""Log -> facts -> store. Restartable at any byte: the cursor moves with what it covers.

Applying is a set union, so a batch that was applied and not acknowledged is applied again
without harm. A record that cannot be applied is quarantined and never stops the others; a
store that cannot be written stops everything until it can.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.beginning import Missed
from memtrace_collector.log.durable_end import read_durable_end
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import Entry, Wait, read, report_missed
from memtrace_collector.processor import counting
from memtrace_collector.processor.quarantine import BAD_DATA, Quarantine
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.base import Applied
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

CURSOR = "projection"
MAX_BATCH_FACTS = 6_000
MAX_BATCH_BYTES = 64 << 20
"""Of the records from which the facts of a batch are."""
BUSY_FACTS = 500
"""A pass with so many facts is one of many: the next gathers for longer."""
GATHER_SECONDS, BUSY_GATHER_SECONDS = 0.2, 0.8
"""From the start of a pass to that of the next: what a store does for one batch costs nearly the
same for few facts as for many."""
_IDLE_SECONDS = 0.25
_RETRY_SECONDS = 1.0
_Facts: TypeAlias = list[tuple[LogPosition, SpanFacts]]
Obey: TypeAlias = Callable[[LogRecord], None]
"""Carries out a control record, once more after a crash."""
Upkeep: TypeAlias = Callable[[bool], bool]
"""Looks after the store between passes, briefly; told whether there was nothing to project, it
says whether it has more to do."""


class ProjectionStore(Protocol):
    """The part of :class:`~memtrace_collector.store.base.FactStore` that is needed here."""

    def apply(self, batch: _Facts, cursor: LogPosition) -> Applied: ...

    def cursor(self, name: str = CURSOR) -> LogPosition: ...

    def set_cursor(self, name: str, position: LogPosition) -> None: ...


class _Batch(NamedTuple):
    """Facts up to ``end``, where ``control`` stands, if there is one, that ends at ``next``."""

    facts: _Facts
    records: int
    skipped: int
    end: LogPosition
    control: Entry | None = None


class _Done(NamedTuple):
    records: int
    facts: int


def _disregard(record: LogRecord) -> None:
    """Nobody carries out control records here."""


def _neglect(idle: bool) -> bool:  # noqa: ARG001  # see Upkeep
    """Nobody looks after the store here."""
    return False


class Projector:
    """Applies what is durable in a log to a store.

    Args:
        log_folder: where the segments are.
        store: its cursor ``projection`` says where to go on.
        reader: which dialects are read.
        obey: called for a control record, when all before it is applied and nothing behind.
        upkeep: called after each pass of :meth:`run`.
        wait: ``SegmentLog.wait`` in the log owner's process; without it the folder is polled.
    """

    def __init__(
        self,
        log_folder: Path,
        store: ProjectionStore,
        reader: RecordReader,
        *,
        obey: Obey = _disregard,
        upkeep: Upkeep = _neglect,
        wait: Wait | None = None,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._folder = log_folder
        self._store = store
        self._reader = reader
        self._obey = obey
        self._upkeep = upkeep
        self._wait = wait
        self._metrics = metrics
        self._quarantine = Quarantine(log_folder, metrics)
        self._passes = Passes(
            "projection failed; it goes on where it was",
            "memtrace.projection.failures",
            metrics,
            pause_seconds=_RETRY_SECONDS,
        )

    @property
    def is_failing(self) -> bool:
        """The last pass of :meth:`run` failed, and is tried again."""
        return self._passes.is_failing

    def run_once(self, stop: threading.Event | None = None) -> int:
        """Project everything durable from the cursor on; the number of records read.

        Afterwards the cursor stands at (or behind) what was the durable end at the call, also
        where only damage was left to read; with ``stop`` set, at the end of some batch.
        """
        return self._pass(stop).records

    def run(self, stop: threading.Event) -> None:
        """Follow the log until ``stop``. A failing store is retried, never skipped."""
        self._passes.run(lambda: self._follow(stop), stop)

    def _follow(self, stop: threading.Event) -> float:
        """One pass, and the wait for more; the seconds to pause after it."""
        start = time.monotonic()
        done = self._pass(stop)
        has_more = self._upkeep(not done.records)
        if done.records:
            gather = GATHER_SECONDS if done.facts < BUSY_FACTS else BUSY_GATHER_SECONDS
            return max(0.0, start + gather - time.monotonic())
        if has_more:
            return 0.0
        if self._wait is None:
            return _IDLE_SECONDS
        self._wait(self._store.cursor(CURSOR), _IDLE_SECONDS)
        return 0.0

    def _pass(self, stop: threading.Event | None) -> _Done:
        records = facts = 0
        for batch in self._batches(self._store.cursor(CURSOR)):
            self._apply(batch)
            records += batch.records
            facts += len(batch.facts)
            if stop is not None and stop.is_set():
                break
        return _Done(records, facts)

    def _batches(self, position: LogPosition) -> Iterator[_Batch]:
        durable_end = read_durable_end(self._folder) or position
        facts: _Facts = []
        records = skipped = size = 0
        end = position
        for entry in read(self._folder, position, self._quarantine.damage, self._missed):
            records += 1
            if entry.record.signal == "control":
                yield _Batch(facts, records, skipped, entry.position, entry)
            else:
                found = self._facts(entry)
                facts += found
                skipped += not found
                size += len(entry.record.body) if found else 0
                end = entry.next
                if len(facts) < MAX_BATCH_FACTS and size < MAX_BATCH_BYTES:
                    continue
                yield _Batch(facts, records, skipped, end)
            facts = []
            records = skipped = size = 0
            end = entry.next
        end = max(end, durable_end)
        if end > position:
            yield _Batch(facts, records, skipped, end)

    def _missed(self, missed: Missed) -> None:
        report_missed(missed)
        self._metrics.add("memtrace.log.missed", missed.segments, reader="projection")

    def _facts(self, entry: Entry) -> _Facts:
        try:
            return [(entry.position, facts) for facts in self._reader.facts(entry.record)]
        except (*BAD_DATA, RecursionError) as error:
            self._quarantine.poison(entry.position, error)
            return []

    def _apply(self, batch: _Batch) -> None:
        if batch.facts:
            self._apply_facts(batch.facts, batch.end)
        else:
            self._store.set_cursor(CURSOR, batch.end)
        if batch.control is not None:
            self._carry_out(batch.control)
        problems = sum(len(facts.problems) for _, facts in batch.facts)
        self._metrics.add("memtrace.projection.records", batch.records)
        self._metrics.add("memtrace.projection.passed", batch.skipped)
        self._metrics.add("memtrace.projection.salvaged", problems)

    def _apply_facts(self, facts: _Facts, end: LogPosition) -> None:
        try:
            self._count(self._store.apply(facts, end))
        except BAD_DATA:
            self._apply_part(facts, self._store.cursor(CURSOR))
            self._store.set_cursor(CURSOR, end)

    def _apply_part(self, facts: _Facts, cursor: LogPosition) -> None:
        """Find by halving what spoils a batch; the cursor moves only when all is through."""
        try:
            self._count(self._store.apply(facts, cursor))
        except BAD_DATA as error:
            if len(facts) == 1:
                self._quarantine.poison(facts[0][0], error)
                return
            middle = len(facts) // 2
            self._apply_part(facts[:middle], cursor)
            self._apply_part(facts[middle:], cursor)

    def _carry_out(self, entry: Entry) -> None:
        try:
            self._obey(entry.record)
        except BAD_DATA as error:
            self._quarantine.poison(entry.position, error)
        self._store.set_cursor(CURSOR, entry.next)

    def _count(self, applied: Applied) -> None:
        counting.count(applied.added, self._metrics)
        self._metrics.add("memtrace.projection.operations", len(applied.added))
        self._metrics.add("memtrace.projection.duplicates", applied.duplicates)
        self._metrics.add("memtrace.projection.conflicts", applied.conflicts)
