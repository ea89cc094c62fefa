"""How much of all request bodies is held in memory at once, and how much of one tenant's."""

from __future__ import annotations

import threading
from collections import Counter

from memtrace_collector.receiver.refusal import Code, RefusedError


class InFlight:
    """Counts bytes. Safe in any number of threads.

    Where tenants share the room, each may hold as much as it leaves free: alone a half, beside
    another that does the same a third, and so on. However many are noisy, there is always some
    left for those who are not.

    Args:
        most: of all tenants together.
        is_shared: whether there may be more than one.
    """

    def __init__(self, most: int, *, is_shared: bool) -> None:
        self._free = most
        self._is_shared = is_shared
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, tenant: str, size: int) -> None:
        """Reserve memory; give it back with :meth:`give`.

        Raises:
            RefusedError: too much is in flight, of all or of this tenant (UNAVAILABLE).
        """
        with self._lock:
            left = self._free - size
            if left < 0:
                raise RefusedError(Code.UNAVAILABLE, "too many requests are in flight")
            if self._is_shared and self._held[tenant] + size > left:
                raise RefusedError(Code.UNAVAILABLE, "too many requests of yours are in flight")
            self._free = left
            self._held[tenant] += size

    def give(self, tenant: str, size: int) -> None:
        with self._lock:
            self._free += size
            self._held[tenant] -= size
            if not self._held[tenant]:
                del self._held[tenant]
