"""Values seen lately, kept aside until somebody looks for them in a prompt.

Indexing a value costs more than the rest of an operation, and most values are never searched
for: they wait here, bounded like the index itself, and go into it with the next search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import RLock
from typing import NamedTuple

from memtrace_otel import containment
from memtrace_otel.containment import Kind, Match, Origin, RecentValues


class _Waiting(NamedTuple):
    ref: str
    text: str
    origin: Origin | None
    graph_id: str
    kind: Kind


class DeferredValues:
    """:class:`RecentValues` behind a waiting line. Thread-safe.

    Attributes:
        evicted: values that left the waiting line unsearched, for lack of room.
    """

    def __init__(
        self, max_items: int = containment.MAX_ITEMS, max_chars: int = containment.MAX_CHARS
    ) -> None:
        self.evicted = 0
        self._max_items = max_items
        self._max_chars = max_chars
        self._chars = 0
        self._waiting: deque[_Waiting] = deque()
        self._values = RecentValues(max_items, max_chars)
        # A destructor may end an operation while this thread holds the lock.
        self._lock = RLock()

    def add(self, ref: str, text: str, origin: Origin | None, graph_id: str, kind: Kind) -> None:
        """Keep a value for later searches; the oldest goes when there is no room."""
        waiting = self._waiting
        with self._lock:
            waiting.append(_Waiting(ref, text, origin, graph_id, kind))
            self._chars += len(text)
            while len(waiting) > self._max_items or self._chars > self._max_chars:
                self._chars -= len(waiting.popleft().text)
                self.evicted += 1

    def find(self, texts: Sequence[str]) -> list[Match]:
        """:meth:`RecentValues.find` over everything added so far."""
        with self._lock:
            waiting, self._waiting, self._chars = self._waiting, deque(), 0
            for value in waiting:
                self._values.add(*value)
        return self._values.find(texts)
