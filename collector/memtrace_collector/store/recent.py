"""Decoded operations that were lately read, by the ids of their rows."""

from __future__ import annotations

from memtrace_collector.graph.facts import Operation

_OPERATIONS = 1 << 12
"""Of one generation: some 12 MiB of usual operations."""
_LARGEST_BODY = 1 << 12
"""Larger ones, in bytes, are decoded each time."""


class RecentOperations:
    """Walks meet the same operations again and again. Ids are never given again and what is
    stored under one is never changed: whoever finds an id in an index may take its operation
    from here.

    Two generations approximate what was least recently used: a full one becomes the older, whose
    operations go with it unless they are asked for. Any number of threads may use it.
    """

    def __init__(self) -> None:
        self._young: dict[int, Operation] = {}
        self._old: dict[int, Operation] = {}

    def get(self, row: int) -> Operation | None:
        found = self._young.get(row)
        if found is None:
            found = self._old.get(row)
            if found is not None:
                self._keep(row, found)
        return found

    def put(self, row: int, operation: Operation, body_bytes: int) -> None:
        if body_bytes <= _LARGEST_BODY:
            self._keep(row, operation)

    def clear(self) -> None:
        """Forget everything, as after an erasure."""
        self._young, self._old = {}, {}

    def _keep(self, row: int, operation: Operation) -> None:
        if len(self._young) >= _OPERATIONS:
            self._young, self._old = {}, self._young
        self._young[row] = operation
