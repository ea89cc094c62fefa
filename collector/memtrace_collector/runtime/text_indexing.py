"""Keeping the full-text index of values, a little at a time, where there is time."""

from __future__ import annotations

import threading
from typing import Protocol, runtime_checkable

from memtrace_collector.store.base import FactStore
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

SLICE_SECONDS = 0.02
PACE_FACTOR = 15.0
"""Between two slices it rests for so many times as long: it shares its interpreter with the
receiver."""
IDLE_SECONDS = 2.0


@runtime_checkable
class IndexingStore(Protocol):
    """A fact store whose index is kept by the process that searches it."""

    def index_text(self, seconds: float) -> bool: ...


class TextIndexing:
    """Lets the index of ``facts`` follow their values; other stores keep theirs themselves."""

    def __init__(self, facts: FactStore, metrics: Metrics = NULL_METRICS) -> None:
        self._facts = facts
        self._metrics = metrics

    def run(self, stop: threading.Event) -> None:
        """Until ``stop``."""
        facts = self._facts
        if not isinstance(facts, IndexingStore):
            return
        passes = Passes(
            "the full-text index could not be written",
            "memtrace.text_index.failures",
            self._metrics,
            pause_seconds=IDLE_SECONDS,
        )
        passes.run(lambda: _one_slice(facts), stop)


def _one_slice(facts: IndexingStore) -> float:
    return PACE_FACTOR * SLICE_SECONDS if facts.index_text(SLICE_SECONDS) else IDLE_SECONDS
