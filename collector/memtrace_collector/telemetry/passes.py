"""A stage's loop: one pass after the other until it is told to stop, whatever a pass raises."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from memtrace_collector.telemetry.metrics import Metrics

SAY_AGAIN_SECONDS = 60.0
"""A failure that goes on is logged so often; every one is counted."""


class Passes:
    """Runs passes; a failing one is counted, logged and followed by a pause.

    Args:
        what: says in the log what failed, as in ``the outbox could not be read or written``.
        counter: name of the counter of failed passes.
        pause_seconds: after a failed pass.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        what: str,
        counter: str,
        metrics: Metrics,
        *,
        pause_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._counter = counter
        self._metrics = metrics
        self._pause = pause_seconds
        self._clock = clock
        self._logger = logging.getLogger(__name__)
        self._unsaid = 0
        self._said_at: float | None = None
        self.is_failing = False
        """The last pass failed."""

    def run(self, one_pass: Callable[[], float], stop: threading.Event) -> None:
        """Repeat ``one_pass``, which returns the seconds to pause after it, until ``stop``."""
        while not stop.is_set():
            stop.wait(self.once(one_pass))

    def once(self, one_pass: Callable[[], float]) -> float:
        """One pass; the seconds to pause after it."""
        try:
            pause = one_pass()
        except Exception:
            self.is_failing = True
            self._failed()
            return self._pause
        self.is_failing = False
        self._went_well()
        return pause

    def _failed(self) -> None:
        self._metrics.add(self._counter, 1)
        now = self._clock()
        if self._said_at is not None and now - self._said_at < SAY_AGAIN_SECONDS:
            self._unsaid += 1
            return
        more = f" ({self._unsaid} more times since it was last said)" if self._unsaid else ""
        self._logger.exception("%s%s", self._what, more)
        self._said_at, self._unsaid = now, 0

    def _went_well(self) -> None:
        if self._unsaid:
            self._logger.warning("%s, %d more times; now it works again", self._what, self._unsaid)
            self._unsaid = 0
