"""The owner's side of the process that projects: started, watched, started again, ended."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from typing import IO, cast

import msgspec

from memtrace_collector.errors import (
    DamagedError,
    MemtraceError,
    StoreInUseError,
    UnreachableError,
    WrongUseError,
)
from memtrace_collector.exporter.backoff import delay_seconds
from memtrace_collector.runtime.projection_messages import Failed, Ready, Report, Start, Stop
from memtrace_collector.runtime.tally import gathered
from memtrace_collector.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

CHILD = "memtrace_collector.runtime.projection_child"
FIRST_RESTART_SECONDS = 0.1
LONGEST_RESTART_SECONDS = 30.0
STEADY_SECONDS = 30.0
"""A process that lived so long was well: its end is the first failure again."""
END_SECONDS = 1.0
"""For the end itself, beyond the time to drain."""
_KINDS = {kind.__name__: kind for kind in (DamagedError, StoreInUseError, WrongUseError)}


class ProjectionProcess:
    """One child process at a time, from :meth:`start` to :meth:`stop`.

    Args:
        start: what it is told; nothing of it stands on a command line.
        metrics: its counters are added here, and ``memtrace.projection.restarts``.
    """

    def __init__(self, start: Start, metrics: Metrics) -> None:
        self._start = start
        self._metrics = metrics
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._stopping = threading.Event()
        self._is_known = threading.Event()
        """The first process is ready, or will never be."""
        self._failure: MemtraceError | None = None
        self._missing = "the projecting process starts"
        self._thread = threading.Thread(
            target=self._keep_running, name="memtrace-projection", daemon=True
        )

    def start(self) -> None:
        """Start it; it is ready on return.

        Raises:
            MemtraceError: it cannot open the stores.
        """
        self._thread.start()
        self._is_known.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        child = self._child
        return child.process.pid if child is not None and child.process.poll() is None else None

    def missing(self) -> str:
        """What keeps it from projecting, in words; empty while all is well."""
        return self._missing

    def stop(self, seconds: float) -> None:
        """Have it project what is on disk by now, for at most so long, and end. Idempotent."""
        self._stopping.set()
        with self._lock:
            child = self._child
            if child is not None:
                child.tell(Stop(seconds=seconds))
        if child is None:
            return
        self._thread.join(seconds + END_SECONDS)
        if self._thread.is_alive():
            logger.warning("the projecting process is still busy and is killed")
            child.process.kill()
            self._thread.join(END_SECONDS)

    def _keep_running(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            reason = self._run_once()
            self._missing = f"the projecting process has ended: {reason}"
            if not self._is_known.is_set():
                self._not_started(UnreachableError(self._missing))
            if self._failure is not None or self._stopping.is_set():
                return
            failures = 1 if time.monotonic() - began > STEADY_SECONDS else failures + 1
            pause = delay_seconds(
                failures, first=FIRST_RESTART_SECONDS, longest=LONGEST_RESTART_SECONDS
            )
            logger.error("%s; the next starts in %.1f s", self._missing, pause)
            self._metrics.add("memtrace.projection.restarts", 1)
            self._stopping.wait(pause)

    def _run_once(self) -> str:
        """Start a process and listen to it until it has ended; why it has."""
        with self._lock:
            if self._stopping.is_set():
                return "not started"
            child = self._child = _Child()
            child.tell(self._start)
        try:
            failed = self._listen(child)
        finally:
            code = child.wait()
        if failed is None:
            return f"signal {-code}" if code < 0 else f"exit code {code}"
        if not self._is_known.is_set():
            self._not_started(_KINDS.get(failed.kind, UnreachableError)(failed.message))
        return failed.message

    def _listen(self, child: _Child) -> Failed | None:
        """What it says of its stores, where these cannot be opened."""
        failed = None
        for line in child.output:
            message = msgspec.json.decode(line, type=Ready | Failed | Report)
            if isinstance(message, Ready):
                self._missing = ""
                self._is_known.set()
            elif isinstance(message, Failed):
                failed = message
            else:
                self._take(message)
        return failed

    def _take(self, report: Report) -> None:
        self._missing = "the projection fails and is tried again" if report.failing else ""
        for count in report.counts:
            self._metrics.add(count.name, count.value, **count.attributes)
        for spread in report.spreads:
            self._metrics.merge(spread.name, gathered(spread), **spread.attributes)

    def _not_started(self, error: MemtraceError) -> None:
        self._failure = error
        self._is_known.set()


class _Child:
    """A process that projects, and the pipes to and from it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
        )
        self._input = cast(IO[bytes], self.process.stdin)
        self.output = cast(IO[bytes], self.process.stdout)

    def tell(self, message: Start | Stop) -> None:
        """Unless it has ended."""
        with contextlib.suppress(OSError, ValueError):
            self._input.write(msgspec.json.encode(message) + b"\n")
            self._input.flush()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = self.process.wait()
        for pipe in (self._input, self.output):
            with contextlib.suppress(OSError):
                pipe.close()
        return code


def _environment() -> dict[str, str]:
    """What we import from, and none of our settings, which may hold secrets."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MEMTRACE_")}
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    return inherited | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
