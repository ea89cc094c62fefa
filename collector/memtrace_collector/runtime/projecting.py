"""Who projects a folder's log: this process, for one command, or a child of it, under `up`."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from memtrace_collector.config import Config, is_database
from memtrace_collector.dialects.evaluation import Thresholds
from memtrace_collector.errors import UnreachableError
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime.fact_writer import FactWriter
from memtrace_collector.runtime.projection_messages import Start
from memtrace_collector.runtime.projection_process import ProjectionProcess
from memtrace_collector.runtime.stores import read_facts
from memtrace_collector.store.base import FactStore
from memtrace_collector.telemetry.metrics import Metrics

SETTLE_SECONDS = 120.0
TIDY_SHARE = 0.5
"""Of the time that projecting took: what is put off then costs no command much more."""
TIDY_SECONDS = 2.0
"""At most."""
_POLL_SECONDS = 0.01


class Projecting(Protocol):
    """Facts that follow a log."""

    facts: FactStore

    def settle(self) -> None:
        """Return when everything that was on disk at the call is projected.

        Raises:
            UnreachableError: it takes too long.
        """
        ...

    def missing(self) -> str:
        """What keeps it from projecting, in words; empty while all is well."""
        ...

    def stop(self, seconds: float) -> None:
        """Project what is on disk by now, for at most so long, and project no more."""
        ...

    def close(self) -> None:
        """Project no more and close the facts."""
        ...


Follow = Callable[[Path, Config, SegmentLog, Metrics], Projecting]


class Here:
    """Projects in this process when asked to settle. Implements :class:`Projecting`."""

    def __init__(self, folder: Path, config: Config, log: SegmentLog, metrics: Metrics) -> None:
        self._writer = FactWriter(
            folder, record_reader(config), metrics, log.wait, database_of(config)
        )
        self.facts: FactStore = self._writer.facts

    def settle(self) -> None:
        """See the protocol. No process will be idle later, so what was projected is tidied now."""
        began = time.monotonic()
        if self._writer.projector.run_once():
            taken = time.monotonic() - began
            self.facts.tidy(min(TIDY_SHARE * taken, TIDY_SECONDS))

    def missing(self) -> str:
        return ""

    def stop(self, seconds: float) -> None:
        """Nothing runs."""

    def close(self) -> None:
        self._writer.close()


class Apart:
    """Has a child process project all the time. Implements :class:`Projecting`."""

    def __init__(self, folder: Path, config: Config, log: SegmentLog, metrics: Metrics) -> None:
        self._log = log
        self._process = ProjectionProcess(_start(folder, config), metrics)
        with contextlib.ExitStack() as opened:
            opened.callback(self._process.stop, 0.0)
            self._process.start()
            self.facts = read_facts(folder, database_of(config))
            opened.pop_all()

    @property
    def pid(self) -> int | None:
        """Of the process that projects now."""
        return self._process.pid

    def settle(self) -> None:
        end, deadline = self._log.end, time.monotonic() + SETTLE_SECONDS
        while self.facts.cursor() < end:
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"the projection lags more than {SETTLE_SECONDS:.0f} s behind"
                )
            time.sleep(_POLL_SECONDS)

    def missing(self) -> str:
        return self._process.missing()

    def stop(self, seconds: float) -> None:
        self._process.stop(seconds)

    def close(self) -> None:
        self._process.stop(0.0)
        self.facts.close()


def record_reader(config: Config) -> RecordReader:
    """How spans are read under these settings."""
    markers = tuple(marker.encode() for marker in config.server.markers)
    return RecordReader(markers, Thresholds(minimum=config.attribution.thresholds))


def _start(folder: Path, config: Config) -> Start:
    return Start(
        folder=str(folder.resolve()),
        database=database_of(config),
        markers=config.server.markers,
        thresholds=config.attribution.thresholds,
        log_level=logging.getLogger().getEffectiveLevel(),
        values_days=config.retention.values_days,
    )


def database_of(config: Config) -> str:
    """The URL of the store, where it is a database; else empty."""
    return config.store if is_database(config.store) else ""
