"""Log -> facts -> store. Restartable at any byte: the cursor moves with what it covers.

Applying is a set union, so a batch that was applied and not acknowledged is applied again
without harm. A record that cannot be applied is quarantined and never stops the others; a
store that cannot be written stops everything until it can.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.durable_end import read_durable_end
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import Entry, Wait, read
from memtrace_collector.processor.quarantine import BAD_DATA, Quarantine
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.store.base import Applied
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes
from memtrace_otel import semconv

CURSOR = "projection"
MAX_BATCH_FACTS = 5_000
MAX_BATCH_BYTES = 64 << 20
MAX_SYSTEMS = 50
"""Senders name their system: beyond so many names the rest is counted as ``other``."""
_IDLE_SECONDS = 0.25
_RETRY_SECONDS = 1.0
_Facts = list[tuple[LogPosition, SpanFacts]]


class ProjectionStore(Protocol):
    """The part of :class:`~memtrace_collector.store.base.FactStore` that is needed here."""

    def apply(self, batch: _Facts, cursor: LogPosition) -> Applied: ...

    def cursor(self, name: str = CURSOR) -> LogPosition: ...

    def set_cursor(self, name: str, position: LogPosition) -> None: ...


class _Batch(NamedTuple):
    facts: _Facts
    records: int
    skipped: int
    end: LogPosition


class Projector:
    """Applies what is durable in a log to a store.

    Args:
        log_folder: where the segments are.
        store: its cursor ``projection`` says where to go on.
        reader: which dialects are read.
        wait: ``SegmentLog.wait`` in the log owner's process; without it the folder is polled.
    """

    def __init__(
        self,
        log_folder: Path,
        store: ProjectionStore,
        reader: RecordReader,
        *,
        wait: Wait | None = None,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._folder = log_folder
        self._store = store
        self._reader = reader
        self._wait = wait
        self._metrics = metrics
        self._quarantine = Quarantine(log_folder, metrics)
        self._systems: set[str] = set()
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
        records = 0
        for batch in self._batches(self._store.cursor(CURSOR)):
            self._apply(batch)
            records += batch.records
            if stop is not None and stop.is_set():
                break
        return records

    def run(self, stop: threading.Event) -> None:
        """Follow the log until ``stop``. A failing store is retried, never skipped."""
        self._passes.run(lambda: self._follow(stop), stop)

    def _follow(self, stop: threading.Event) -> float:
        """One pass, and the wait for more; the seconds to pause after it."""
        if self.run_once(stop):
            return 0.0
        if self._wait is None:
            return _IDLE_SECONDS
        self._wait(self._store.cursor(CURSOR), _IDLE_SECONDS)
        return 0.0

    def _batches(self, position: LogPosition) -> Iterator[_Batch]:
        durable_end = read_durable_end(self._folder) or position
        facts: _Facts = []
        records = skipped = size = 0
        end = position
        for entry in read(self._folder, position, self._quarantine.damage):
            found = self._facts(entry)
            facts += found
            records += 1
            skipped += not found
            size += len(entry.record.body) if found else 0
            end = entry.next
            if len(facts) >= MAX_BATCH_FACTS or size >= MAX_BATCH_BYTES:
                yield _Batch(facts, records, skipped, end)
                facts = []
                records = skipped = size = 0
        end = max(end, durable_end)
        if end > position:
            yield _Batch(facts, records, skipped, end)

    def _facts(self, entry: Entry) -> _Facts:
        try:
            return [(entry.position, facts) for facts in self._reader.facts(entry.record)]
        except Exception as error:
            self._quarantine.poison(entry.position, error)
            return []

    def _apply(self, batch: _Batch) -> None:
        if not batch.facts:
            self._store.set_cursor(CURSOR, batch.end)
        else:
            try:
                self._count(self._store.apply(batch.facts, batch.end))
            except BAD_DATA:
                self._apply_one_by_one(batch)
        problems = sum(len(facts.problems) for _, facts in batch.facts)
        self._metrics.add("memtrace.projection.records", batch.records)
        self._metrics.add("memtrace.projection.passed", batch.skipped)
        self._metrics.add("memtrace.projection.salvaged", problems)

    def _apply_one_by_one(self, batch: _Batch) -> None:
        """Find the record that spoils a batch; the cursor moves only when all are through."""
        start = self._store.cursor(CURSOR)
        for position, facts in batch.facts:
            self._apply_alone(position, facts, start)
        self._store.set_cursor(CURSOR, batch.end)

    def _apply_alone(self, position: LogPosition, facts: SpanFacts, cursor: LogPosition) -> None:
        try:
            self._count(self._store.apply([(position, facts)], cursor))
        except BAD_DATA as error:
            self._quarantine.poison(position, error)

    def _count(self, applied: Applied) -> None:
        for (system, step), count in applied.added.items():
            self._metrics.add(
                "memtrace.operations", count, system=self._system(system), step=_step(step)
            )
        self._metrics.add("memtrace.projection.operations", sum(applied.added.values()))
        self._metrics.add("memtrace.projection.duplicates", applied.duplicates)
        self._metrics.add("memtrace.projection.conflicts", applied.conflicts)

    def _system(self, name: str) -> str:
        if name not in self._systems and len(self._systems) >= MAX_SYSTEMS:
            return "other"
        self._systems.add(name)
        return name or "unknown"


def _step(name: str) -> str:
    return name if name in semconv.SPAN_NAMES else "other"
