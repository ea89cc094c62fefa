"""What an acknowledgement costs: requests on disk per second, per core of the server, and how soon.

    python -m tests.benchmarks.bench_ack                    # about a minute
    python -m tests.benchmarks.bench_ack --seconds 10 --sizes 64 --folder DISK

A receiver process (both doors, log with fdatasync, metrics) before 64 producers, each of which
awaits its answer before it sends again. The baseline is what the disk allows: an append to a bare
file and one fdatasync per group, in one process without any network, checking or framing. MB/s per
core: bytes by CPU seconds of the server, its log and its metrics included.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PRODUCERS = 64
CLIENTS = 2
_TICKS = os.sysconf("SC_CLK_TCK")
_GROUP = 1024


@dataclass(frozen=True)
class Measured:
    """One row: ``cpu`` is the server's, in seconds."""

    name: str
    size: int
    seconds: float
    cpu: float
    latencies_us: list[int]
    rss_mb: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.latencies_us) / self.seconds

    @property
    def megabytes(self) -> float:
        return self.rate * self.size / 1e6

    @property
    def per_core(self) -> float:
        return len(self.latencies_us) * self.size / 1e6 / self.cpu

    def percentile(self, share: float) -> float:
        """Milliseconds."""
        ordered = sorted(self.latencies_us)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e3


class _BareFile:
    """The baseline: one writer thread, everything queued in one ``writev`` and one fdatasync."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._loop = loop
        self._queue: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def append(self, body: bytes) -> asyncio.Future[None]:
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((body, done))
        return done

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        os.close(self._fd)

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group = [first]
            with contextlib.suppress(queue.Empty):
                while len(group) < _GROUP and (item := self._queue.get_nowait()) is not None:
                    group.append(item)
            for start in range(0, len(group), 512):
                os.writev(self._fd, [body for body, _ in group[start : start + 512]])
            os.fdatasync(self._fd)
            self._loop.call_soon_threadsafe(_resolve, [done for _, done in group])


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


def bare_file(folder: Path, size: int, seconds: float) -> Measured:
    """The baseline of one size."""
    body, latencies = os.urandom(size), []

    async def produce(file: _BareFile, end: float) -> None:
        while (started := time.perf_counter()) < end:
            await file.append(body)
            latencies.append(round(1e6 * (time.perf_counter() - started)))

    async def run() -> float:
        file = _BareFile(folder / "bare", asyncio.get_running_loop())
        started = time.perf_counter()
        await asyncio.gather(*(produce(file, started + seconds) for _ in range(PRODUCERS)))
        taken = time.perf_counter() - started
        file.close()
        return taken

    cpu = time.process_time()
    taken = asyncio.run(run())
    return Measured("bare file", size, taken, time.process_time() - cpu, latencies)


@contextlib.contextmanager
def server(folder: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
    command = [sys.executable, "-m", "tests.benchmarks.ack_server", str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_python()
    ) as process:
        assert process.stdout is not None
        http, grpc = map(int, process.stdout.readline().split())
        yield process, {"http": http, "grpc": grpc}
        process.communicate()


def receiver(folder: Path, door: str, size: int, seconds: float) -> Measured:
    """One size through one door, by clients in processes of their own."""
    with server(folder / "log") as (process, ports):
        _produce(ports[door], door, size, 0.5)
        before = _cpu_seconds(process.pid)
        reports = _produce(ports[door], door, size, seconds)
        cpu = _cpu_seconds(process.pid) - before
        rss = _peak_rss_mb(process.pid)
    shutil.rmtree(folder / "log")
    latencies = [value for report in reports for value in report["latencies_us"]]
    longest = max(report["seconds"] for report in reports)
    return Measured(door, reports[0]["bytes"], longest, cpu, latencies, rss)


def _produce(port: int, door: str, size: int, seconds: float) -> list[dict[str, Any]]:
    each = PRODUCERS // CLIENTS
    command = [sys.executable, "-m", "tests.benchmarks.ack_clients"]
    arguments = [door, str(port), str(each), str(size), str(seconds)]
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, *arguments], cwd=ROOT, stdout=subprocess.PIPE, env=_python()
                )
            )
            for _ in range(CLIENTS)
        ]
        return [json.loads(client.communicate()[0]) for client in clients]


def _python() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "collector")))}


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _peak_rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--sizes", default="1,64,512", help="KB of a request")
    parser.add_argument("--doors", default="http,grpc")
    parser.add_argument("--folder", type=Path, help="where to write; on the disk under test")
    options = parser.parse_args()
    print(
        f"{'':<10} {'KB':>4} {'req/s':>7} {'MB/s':>6} {'us CPU/req':>10} {'MB/s per core':>13} "
        f"{'of bare':>8} {'p50 ms':>7} {'p99 ms':>7} {'RSS MB':>7}"
    )
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for kilobytes in map(int, options.sizes.split(",")):
            size = kilobytes * 1024
            baseline = bare_file(Path(name), size, options.seconds / 2)
            (Path(name) / "bare").unlink()
            _show(baseline, baseline)
            for door in options.doors.split(","):
                _show(receiver(Path(name), door, size, options.seconds), baseline)


def _show(row: Measured, baseline: Measured) -> None:
    cost = 1e6 * row.cpu / len(row.latencies_us)
    print(
        f"{row.name:<10} {row.size // 1024:>4} {row.rate:>7.0f} {row.megabytes:>6.0f} "
        f"{cost:>10.0f} {row.per_core:>13.0f} {row.megabytes / baseline.megabytes:>8.2f} "
        f"{row.percentile(0.5):>7.1f} {row.percentile(0.99):>7.1f} {row.rss_mb:>7.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
