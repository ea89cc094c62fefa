"""The process that projects a folder's log, with a GIL of its own. Started by `up` only.

It reads its settings and its end from standard input, says on standard output how it stands
and what it counted, and never outlives its owner.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from memtrace_collector.dialects.evaluation import Thresholds
from memtrace_collector.errors import MemtraceError
from memtrace_collector.log.durable_end import read_durable_end
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime.fact_writer import FactWriter
from memtrace_collector.runtime.garbage import collect_rarely
from memtrace_collector.runtime.log_format import log_to_stderr
from memtrace_collector.runtime.projection_messages import Failed, Ready, Report, Start, Stop
from memtrace_collector.runtime.stores import LOG_FOLDER
from memtrace_collector.runtime.tally import Tally
from memtrace_collector.runtime.told import told

REPORT_SECONDS = 0.5
POLL_SECONDS = 0.02
"""How late a look at the log's end may see it move: a read of 20 bytes."""
OWNER_GONE = 3
"""Exit code when the owner has ended without a word."""


class _Ending:
    """When to end: told by :class:`Stop`, or at once when the owner is gone."""

    def __init__(self, lines: BinaryIO) -> None:
        self.stop = threading.Event()
        """No more than what is on disk by now."""
        self.give_up = threading.Event()
        """No more at all."""
        self._lines = lines

    def listen(self) -> None:
        """Until the owner says so or is gone."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            told_to = msgspec.json.decode(self._lines.readline(), type=Stop)
            timer = threading.Timer(told_to.seconds, self.give_up.set)
            timer.daemon = True
            timer.start()
            self.stop.set()
            self._lines.read()
        os._exit(OWNER_GONE)


class _Reporter:
    """Sends reports, one after the other, from any thread."""

    def __init__(self, out: BinaryIO, tally: Tally, is_failing: Callable[[], bool]) -> None:
        self._out = out
        self._tally = tally
        self._is_failing = is_failing
        self._last_failing = False
        self._lock = threading.Lock()

    def run(self, stop: threading.Event) -> None:
        with contextlib.suppress(BrokenPipeError):
            while not stop.wait(REPORT_SECONDS):
                self.report()

    def report(self) -> None:
        """Tell what is new, if anything is."""
        with self._lock:
            (counts, spreads), failing = self._tally.take(), self._is_failing()
            if counts or failing != self._last_failing:
                say(self._out, Report(counts=counts, spreads=spreads, failing=failing))
            self._last_failing = failing


def say(out: BinaryIO, message: Ready | Failed | Report) -> None:
    """One line, at once."""
    out.write(msgspec.json.encode(message) + b"\n")
    out.flush()


def wait_for_growth(folder: Path, stop: threading.Event) -> Callable[[LogPosition, float], bool]:
    """``SegmentLog.wait`` for a process that does not own the log; ends early with ``stop``."""

    def wait(position: LogPosition, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while (read_durable_end(folder) or START) <= position:
            left = deadline - time.monotonic()
            if left <= 0 or stop.wait(min(POLL_SECONDS, left)):
                return False
        return True

    return wait


def project(start: Start, ending: _Ending, out: BinaryIO) -> None:
    """Open, follow the log until told to stop, project the rest.

    Raises:
        MemtraceError: the stores cannot be opened.
    """
    tally = Tally()
    folder = Path(start.folder)
    reader = RecordReader(
        [marker.encode() for marker in start.markers], Thresholds(minimum=start.thresholds)
    )
    wait = wait_for_growth(folder / LOG_FOLDER, ending.stop)
    with told(folder):
        writer = FactWriter(
            folder, reader, tally, wait, start.database, values_days=start.values_days
        )
    with contextlib.closing(writer):
        say(out, Ready())
        reporter = _Reporter(out, tally, lambda: writer.projector.is_failing)
        threading.Thread(
            target=reporter.run, args=(ending.give_up,), name="memtrace-reports", daemon=True
        ).start()
        collect_rarely()
        try:
            writer.projector.run(ending.stop)
            writer.projector.run_once(ending.give_up)
        finally:
            reporter.report()


def main() -> int:
    """Run the process that `up` starts; its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # a terminal or a supervisor signals the whole group: the owner says when to end
        signal.signal(number, signal.SIG_IGN)
    lines, out = _pipes()
    first = lines.readline()
    if not first:
        return OWNER_GONE
    start = msgspec.json.decode(first, type=Start)
    log_to_stderr(start.log_level)
    ending = _Ending(lines)
    threading.Thread(target=ending.listen, name="memtrace-owner", daemon=True).start()
    try:
        project(start, ending, out)
    except MemtraceError as error:
        say(out, Failed(kind=type(error).__name__, message=str(error)))
        return error.exit_code
    except BrokenPipeError:
        return OWNER_GONE
    return 0


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """From and to the owner; whatever else prints goes to standard error.

    Unbuffered in: at the end of the interpreter nobody may hold the lock of a buffer.
    """
    lines = os.fdopen(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return lines, out


if __name__ == "__main__":
    sys.exit(main())
