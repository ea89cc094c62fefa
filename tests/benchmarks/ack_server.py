"""A receiver process for ``bench_ack``: both doors before a log on disk, with its metrics.

    python -m tests.benchmarks.ack_server FOLDER

Prints its ports (HTTP, gRPC) and serves until its standard input ends.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.receiver.ingest import Ingest
from memtrace_collector.receiver.server import Listen, ReceiverServer
from memtrace_collector.telemetry.telemetry import Telemetry


def main(folder: Path) -> None:
    telemetry = Telemetry("benchmark")
    with (
        contextlib.closing(telemetry),
        contextlib.closing(SegmentLog(folder, metrics=telemetry)) as log,
    ):
        server = ReceiverServer(
            Ingest(log.append, metrics=telemetry), Listen(grpc_port=0, http_port=0)
        )
        server.start()
        print(server.http_port, server.grpc_port, flush=True)
        sys.stdin.read()
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
