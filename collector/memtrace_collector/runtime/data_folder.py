"""What one data folder holds, opened: log, stores, and how to ask them.

Shared by `up`, which keeps it open, and by the commands that open it once. The caller owns
the folder.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from concurrent import futures
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.access.authentication import Authenticator
from memtrace_collector.access.throttle import Throttle
from memtrace_collector.config import Config
from memtrace_collector.errors import (
    DamagedError,
    NotFoundError,
    UnreachableError,
    WrongUseError,
)
from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.log import reader
from memtrace_collector.log.errors import LogError
from memtrace_collector.log.format import Signal
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.room import DiskRoom
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.receiver.decode import InvalidRequestError, decode_traces
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.refusal import RefusedError
from memtrace_collector.receiver.tenants import by_credentials
from memtrace_collector.runtime.erasing import Eraser, Json
from memtrace_collector.runtime.erasing_together import OrderedErasing, erase_everywhere
from memtrace_collector.runtime.projecting import Follow, Here, database_of, record_reader
from memtrace_collector.runtime.stores import LOG_FOLDER, open_cases
from memtrace_collector.runtime.told import told
from memtrace_collector.store.erasures import ErasureOrders
from memtrace_collector.telemetry.metrics import Metrics

COMMIT_SECONDS = 30.0
_SIGNALS: dict[str, Signal] = {"traces": "traces", "logs": "logs"}


class DataFolder:
    """Log, ingest, facts that follow the log, cases, of one tenant; :meth:`close` when done."""

    def __init__(
        self,
        folder: Path,
        config: Config,
        metrics: Metrics,
        follow: Follow = Here,
        authenticator: Authenticator | None = None,
    ) -> None:
        """Open (and make, where missing) log and stores.

        Args:
            follow: who projects the log.
            authenticator: knows who is sending; None: everybody is the tenant ``default``.

        Raises:
            StoreInUseError: another process has the log or the facts open.
            DamagedError: a database is not one.
            WrongUseError: the folder cannot be written.
        """
        with contextlib.ExitStack() as opened, told(folder):
            self.log_folder = folder / LOG_FOLDER
            self.log = SegmentLog(
                self.log_folder,
                room=DiskRoom(self.log_folder, config.retention.reserve),
                metrics=metrics,
            )
            opened.callback(self.log.close)
            self.projection = follow(folder, config, self.log, metrics)
            opened.callback(self.projection.close)
            self.facts = self.projection.facts
            self.cases = open_cases(folder, database_of(config))
            opened.callback(self.cases.close)
            self.tenant = DEFAULT_TENANT
            known = authenticator or Authenticator()
            self.ingest = Ingest(
                self.log.append,
                tenant_of=by_credentials(known),
                throttle=Throttle(known.limits_of),
                max_request_bytes=config.server.max_request_bytes,
                is_shared=known.is_on,
                metrics=metrics,
            )
            self.eraser = Eraser(self, record_reader(config), metrics)
            self.erasing: Eraser | OrderedErasing = self.eraser
            if isinstance(self.facts, ErasureOrders):
                self.erasing = OrderedErasing(self.facts, self.eraser, metrics)
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    def for_tenant(self, tenant: str) -> DataFolder:
        """The same folder for another tenant: its facts and cases, and what it appends is its
        own. One :meth:`close` closes it for all."""
        data = copy.copy(self)
        data.tenant = tenant
        data.facts = self.facts.for_tenant(tenant)
        data.cases = self.cases.for_tenant(tenant)
        return data

    def append(self, body: bytes, signal: str) -> None:
        """Take a protobuf request; returns when it is on disk.

        Raises:
            WrongUseError: not a request of that signal.
            UnreachableError: the disk does not take it.
        """
        if signal not in _SIGNALS:
            raise WrongUseError(f"the signal is traces or logs, not {signal!r}")
        try:
            submission = self.ingest.submit(self.tenant, _SIGNALS[signal], "protobuf", body)
            if submission.durable is not None:
                submission.durable.result(COMMIT_SECONDS)
        except RefusedError as refusal:
            kind = UnreachableError if refusal.retry_after_seconds else WrongUseError
            raise kind(str(refusal)) from None
        except (LogError, futures.TimeoutError) as error:
            raise UnreachableError(f"the log cannot be written: {error}") from None

    def project(self) -> None:
        """Return when everything that is on disk by now is projected.

        Raises:
            UnreachableError: it takes too long.
        """
        self.projection.settle()

    def catching_up(self) -> Callable[[], bool]:
        """Asks whether everything is projected that was on disk at this call."""
        end = self.log.end
        return lambda: self.facts.cursor() >= end

    def erase(self, graph_id: str) -> Json:
        """See :meth:`~memtrace_collector.runtime.erasing.Eraser.erase`; where other logs feed
        the same facts, :func:`~memtrace_collector.runtime.erasing_together.erase_everywhere`."""
        if isinstance(self.facts, ErasureOrders):
            return erase_everywhere(self, graph_id)
        return self.eraser.erase(self.tenant, graph_id)

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
