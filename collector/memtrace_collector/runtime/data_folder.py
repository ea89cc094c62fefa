"""What one data folder holds, opened: log, stores, projector, and how to ask them.

Shared by `up`, which keeps it open, and by the commands that open it once. The caller owns
the folder.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.config import Config
from memtrace_collector.dialects.evaluation import Thresholds
from memtrace_collector.errors import (
    DamagedError,
    NotFoundError,
    StoreInUseError,
    UnreachableError,
    WrongUseError,
)
from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.log import reader
from memtrace_collector.log.errors import LogError, LogInUseError
from memtrace_collector.log.format import Signal
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.receiver.decode import InvalidRequestError, decode_traces
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.refusal import RefusedError
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from memtrace_collector.telemetry.metrics import Metrics

COMMIT_SECONDS = 30.0
SETTLE_SECONDS = 120.0
_POLL_SECONDS = 0.01
_SIGNALS: dict[str, Signal] = {"traces": "traces", "logs": "logs"}


class DataFolder:
    """Log, stores, projector and ingest over one folder; :meth:`close` when done."""

    def __init__(self, folder: Path, config: Config, metrics: Metrics) -> None:
        """Open (and make, where missing) log and stores.

        Raises:
            StoreInUseError: another process has the log open.
            DamagedError: a database is not one.
            WrongUseError: the folder cannot be written.
        """
        with contextlib.ExitStack() as opened, told(folder):
            self.log_folder = folder / "log"
            self.log = SegmentLog(self.log_folder, metrics=metrics)
            opened.callback(self.log.close)
            self.facts = SqliteFactStore(folder / "facts.db")
            opened.callback(self.facts.close)
            self.cases = SqliteCaseStore(folder / "cases.db")
            opened.callback(self.cases.close)
            self.projector = Projector(
                self.log_folder,
                self.facts,
                record_reader(config),
                wait=self.log.wait,
                metrics=metrics,
            )
            self.ingest = Ingest(
                self.log.append,
                max_request_bytes=config.server.max_request_bytes,
                metrics=metrics,
            )
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    def append(self, body: bytes, signal: str) -> None:
        """Take a protobuf request; returns when it is on disk.

        Raises:
            WrongUseError: not a request of that signal.
            UnreachableError: the disk does not take it.
        """
        if signal not in _SIGNALS:
            raise WrongUseError(f"the signal is traces or logs, not {signal!r}")
        try:
            submission = self.ingest.submit(DEFAULT_TENANT, _SIGNALS[signal], "protobuf", body)
            if submission.durable is not None:
                submission.durable.result(COMMIT_SECONDS)
        except RefusedError as refusal:
            kind = UnreachableError if refusal.retry_after_seconds else WrongUseError
            raise kind(str(refusal)) from None
        except (LogError, futures.TimeoutError) as error:
            raise UnreachableError(f"the log cannot be written: {error}") from None

    def project(self) -> None:
        """Project everything on disk, here and now."""
        self.projector.run_once()

    def wait_projected(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until another thread has projected everything that is on disk by now.

        Raises:
            UnreachableError: it takes longer than that.
        """
        end, deadline = self.log.end, time.monotonic() + seconds
        while self.facts.cursor() < end:
            if time.monotonic() > deadline:
                raise UnreachableError(f"the projection lags more than {seconds:.0f} s behind")
            time.sleep(_POLL_SECONDS)

    def request_at(self, position: LogPosition) -> ExportTraceServiceRequest:
        """The trace request that starts there in the log.

        Raises:
            NotFoundError: the log holds it no more.
            DamagedError: it cannot be read.
        """
        entry = next(reader.read(self.log_folder, position), None)
        if entry is None or entry.position != position or entry.record.signal != "traces":
            raise NotFoundError(f"the log holds no traces at {tuple(position)} any more")
        try:
            return decode_traces(entry.record)
        except InvalidRequestError as error:
            raise DamagedError(f"log record at {tuple(position)}: {error}") from None


def record_reader(config: Config) -> RecordReader:
    """How spans are read under these settings."""
    markers = tuple(marker.encode() for marker in config.server.markers)
    return RecordReader(markers, Thresholds(minimum=config.attribution.thresholds))


@contextlib.contextmanager
def told(folder: Path) -> Iterator[None]:
    """What goes wrong with a folder, in words for the person who named it."""
    try:
        yield
    except LogInUseError as error:
        raise StoreInUseError(f"{error}; end it, or give another --store") from None
    except sqlite3.DatabaseError as error:
        raise DamagedError(
            f"a database in {folder} cannot be used: {error}; `memtrace-otel doctor` says which"
        ) from None
    except OSError as error:
        raise WrongUseError(f"cannot use {folder}: {error}") from None
