"""A loop in a thread of its own, stopped by an event."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)

JOIN_SECONDS = 10.0


class Stage:
    """Runs ``run(stop)`` until :meth:`stop`; ``run`` is expected to end soon after."""

    def __init__(self, name: str, run: Callable[[threading.Event], None]) -> None:
        self.name = name
        self._run = run
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=f"memtrace-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """End the loop and wait for it, at most ``JOIN_SECONDS``; False when it goes on."""
        self._stop.set()
        self._thread.join(JOIN_SECONDS)
        if self._thread.is_alive():
            logger.error("%s did not end within %.0f s", self.name, JOIN_SECONDS)
        return not self._thread.is_alive()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _guarded(self) -> None:
        try:
            self._run(self._stop)
        except Exception:
            logger.exception("%s ended with an error", self.name)
