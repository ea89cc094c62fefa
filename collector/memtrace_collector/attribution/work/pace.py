"""How many cases a minute a worker looks at."""

from __future__ import annotations

import threading

_MINUTE_NS = 60_000_000_000


class Pace:
    """A bucket that fills with ``per_minute`` permits a minute and holds a minute's worth."""

    def __init__(self, per_minute: int, now_ns: int) -> None:
        self._per_minute = per_minute
        self._permits = float(per_minute)
        self._at_ns = now_ns
        self._lock = threading.Lock()

    def spend(self, now_ns: int) -> bool:
        """Take one permit; False when there is none now."""
        with self._lock:
            grown = max(0, now_ns - self._at_ns) * self._per_minute / _MINUTE_NS
            self._permits = min(float(self._per_minute), self._permits + grown)
            self._at_ns = now_ns
            if self._permits < 1:
                return False
            self._permits -= 1
            return True

    def give_back(self) -> None:
        """A permit was taken for nothing."""
        with self._lock:
            self._permits += 1
