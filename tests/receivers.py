"""A real receiver on free ports over a real log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.limits import Limits
from memtrace_collector.receiver.server import Listen, ReceiverServer


@dataclass
class Receiver:
    server: ReceiverServer
    log: SegmentLog

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.server.http_port}"

    @property
    def grpc(self) -> str:
        return f"127.0.0.1:{self.server.grpc_port}"

    def records(self) -> list[LogRecord]:
        return [entry.record for entry in read(self.log.folder, START)]


@contextmanager
def serving(
    ingest: Ingest, *, http_port: int = 0, grpc_port: int = 0, limits: Limits | None = None
) -> Iterator[ReceiverServer]:
    """Only the two doors, before an ``ingest`` of the test's own."""
    server = ReceiverServer(ingest, Listen(http_port=http_port, grpc_port=grpc_port), limits)
    server.start()
    try:
        yield server
    finally:
        server.stop(1)


@contextmanager
def running(
    folder: Path,
    *,
    http_port: int = 0,
    grpc_port: int = 0,
    limits: Limits | None = None,
    **bounds: int,
) -> Iterator[Receiver]:
    """``bounds``: of :class:`Ingest`, in bytes."""
    with (
        closing(SegmentLog(folder)) as log,
        serving(
            Ingest(log.append, **bounds), http_port=http_port, grpc_port=grpc_port, limits=limits
        ) as server,
    ):
        yield Receiver(server, log)
