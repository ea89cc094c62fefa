"""Loops in threads of their own: started, drained and stopped in bounded time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.02


class Stage:
    """Runs ``run(stop)`` until :meth:`stop`; ``run`` is expected to end soon after."""

    def __init__(self, name: str, run: Callable[[threading.Event], None]) -> None:
        self.name = name
        self._run = run
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=f"memtrace-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End the loop and wait for it, at most ``seconds``; False when it goes on."""
        self._stop.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            logger.warning("%s is still busy; the process ends without it", self.name)
        return not self._thread.is_alive()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _guarded(self) -> None:
        try:
            self._run(self._stop)
        except Exception:
            logger.exception("%s ended with an error", self.name)


class Deadline:
    """A time for several steps together; it runs from the first question on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end: float | None = None

    def left(self) -> float:
        """Seconds left, never negative."""
        if self._end is None:
            self._end = time.monotonic() + self._seconds
        return max(0.0, self._end - time.monotonic())


def drain(what: str, done: Callable[[], bool], seconds: float) -> bool:
    """Wait until ``done``, at most ``seconds``; what is left goes on at the next start."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            logger.warning("%s is not finished; it goes on at the next start", what)
            return False
        time.sleep(_POLL_SECONDS)
    return True
