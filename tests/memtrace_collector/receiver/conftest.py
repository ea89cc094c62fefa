"""A real receiver on free ports over a real log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START
from memtrace_collector.log.reader import read
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.receiver.ingest import Ingest
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
def running(folder: Path, **limits: int) -> Iterator[Receiver]:
    log = SegmentLog(folder)
    server = ReceiverServer(Ingest(log.append, **limits), Listen(grpc_port=0, http_port=0))
    server.start()
    try:
        yield Receiver(server, log)
    finally:
        server.stop(1)
        log.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Receiver]]:
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(running(tmp_path / "log", **limits))


@pytest.fixture
def receiver(start: Callable[..., Receiver]) -> Receiver:
    return start()
