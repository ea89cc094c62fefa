"""Ending what the program let go of, on a thread of its own.

A stream that nobody reads to its end is noticed by the garbage collector or by its closing,
which the garbage collector may cause too. Such code runs between any two instructions, also
while a lock is held, so it must take none: it only hands over.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

from memtrace_otel import farewell


class Endable(Protocol):
    def give_up(self) -> None:
        """Close it; harmless when it was closed before. Must not raise."""


class Abandoned:
    """A queue of things to end, and the daemon thread that ends them.

    What is still open when the process exits is ended then.
    """

    def __init__(self) -> None:
        self._open: weakref.WeakSet[Endable] = weakref.WeakSet()
        self._queue: SimpleQueue[Endable] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def watch(self, item: Endable) -> None:
        """Expect that ``item`` may be abandoned. Not for destructors."""
        with self._lock:
            self._open.add(item)
            if self._thread is None:
                farewell.before(self.drain)
            if self._thread is None or not self._thread.is_alive():  # a forked child has none
                self._thread = threading.Thread(target=self._run, name="memtrace-otel", daemon=True)
                self._thread.start()

    def put(self, item: Endable) -> None:
        """Have ``item`` ended soon. Takes no lock, may be called from a destructor."""
        self._queue.put(item)

    def drain(self) -> None:
        """End now, on this thread, whatever is open."""
        for item in list(self._open):
            item.give_up()
        with suppress(Empty):
            while True:
                self._queue.get_nowait().give_up()

    def _run(self) -> None:
        while True:
            self._queue.get().give_up()
