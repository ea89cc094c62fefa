"""The one writer of a folder's facts: its lock, its store, its projector.

``facts.lock`` (``flock``) is held for as long as somebody may write facts. It is apart from the
lock of the folder, because the process that projects may outlive its owner for a moment.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from pathlib import Path
from typing import IO

from memtrace_collector.errors import StoreInUseError
from memtrace_collector.log.reader import Wait
from memtrace_collector.processor.orders import obeying
from memtrace_collector.processor.projector import Projector
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime.exchange import finish_exchange
from memtrace_collector.runtime.stores import LOG_FOLDER, open_facts
from memtrace_collector.runtime.upkeep import StoreUpkeep
from memtrace_collector.telemetry.metrics import Metrics

LOCK_FILE = "facts.lock"
WAIT_SECONDS = 10.0
"""A process whose owner was killed needs a moment to notice."""
_POLL_SECONDS = 0.01


class FactWriter:
    """Opens the facts for writing; :meth:`close` when done.

    Args:
        folder: the data folder; its log need not be open here.
        wait: see :class:`~memtrace_collector.processor.projector.Projector`.
        database: where facts are instead of in the folder; its URL.
        values_days: how long values are kept; 0: for ever.

    Raises:
        StoreInUseError: another process goes on writing those of this log.
        DamagedError: a database is not one.
        UnreachableError: nobody answers at ``database``.
        OSError: the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        reader: RecordReader,
        metrics: Metrics,
        wait: Wait | None = None,
        database: str = "",
        *,
        values_days: float = 0.0,
    ) -> None:
        with contextlib.ExitStack() as opened:
            opened.enter_context(sole_writer(folder))
            finish_exchange(folder)
            self.facts = open_facts(folder, database)
            opened.callback(self.facts.close)
            self.projector = Projector(
                folder / LOG_FOLDER,
                self.facts,
                reader,
                obey=obeying(self.facts),
                upkeep=StoreUpkeep(self.facts, values_days, metrics=metrics),
                wait=wait,
                metrics=metrics,
            )
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close the store and give it up. Idempotent."""
        self._opened.close()


def sole_writer(folder: Path) -> IO[bytes]:
    """The lock of a folder's facts, held for as long as it is open.

    Raises:
        StoreInUseError: another process holds it, and goes on to.
        OSError: the folder cannot be used.
    """
    path = folder / LOCK_FILE
    deadline = time.monotonic() + WAIT_SECONDS
    lock = path.open("ab")
    while not _try_lock(lock):
        if time.monotonic() >= deadline:
            lock.close()
            raise StoreInUseError(
                f"another process goes on writing the facts in {path.parent}; end it"
            )
        time.sleep(_POLL_SECONDS)
    return lock


def _try_lock(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
