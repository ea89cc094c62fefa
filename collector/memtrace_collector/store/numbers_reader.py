"""The numbers of processes in SQLite: which were seen, and between which none is missing."""

from __future__ import annotations

from collections.abc import Collection

from memtrace_collector.graph.reader import Run, SequenceNumber
from memtrace_collector.store.connections import Connections
from memtrace_collector.store.runs import runs_of

_PROCESSES_KEPT = 4_096
_SEQUENCE_FROM = (
    "SELECT (SELECT min(number) FROM sequence WHERE tenant = ?1 AND process = ?2), max(number),"
    " sum(number > ?3), sum(farewell) > (max(number * farewell) = max(number)) FROM sequence"
    " WHERE tenant = ?1 AND process = ?2 AND number >= ?3"
)
"""Last: whether somebody said farewell before the last number."""
_ENDS = (
    "SELECT number, start_ns, end_ns, farewell, number = ?3 FROM sequence"
    " WHERE tenant = ?1 AND process = ?2 AND number IN (?3, ?4) ORDER BY number"
)
_EDGES = (
    "SELECT number, start_ns, end_ns, farewell, opens FROM (SELECT *,"
    " ifnull(lag(number + farewell * number) OVER w <> number - 1, 1) AS opens,"
    " ifnull(lead(number) OVER w <> number + 1, 1) OR farewell AS closes"
    " FROM sequence WHERE tenant = ? AND process = ? WINDOW w AS (ORDER BY number))"
    " WHERE opens OR closes ORDER BY number"
)


class SqliteNumbers:
    """Of one tenant. Safe in any number of threads."""

    def __init__(self, connections: Connections, tenant: str) -> None:
        self._tenant = tenant
        self._connections = connections
        self._whole: dict[str, tuple[int, int]] = {}

    def sequence(self, processes: Collection[str]) -> dict[str, list[SequenceNumber]]:
        found: dict[str, list[SequenceNumber]] = {}
        for process in processes:
            rows = self._connections.query(
                "SELECT process, number, start_ns, end_ns, farewell FROM sequence"
                " WHERE tenant = ? AND process = ? ORDER BY number",
                (self._tenant, process),
            )
            numbers = [
                SequenceNumber(name, number, start_ns, end_ns, bool(farewell))
                for name, number, start_ns, end_ns, farewell in rows
            ]
            if numbers:
                found[process] = numbers
        return found

    def runs(self, processes: Collection[str]) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for process in processes:
            ends = self._gapless(process)
            if ends is None:
                rows = self._connections.query(_EDGES, (self._tenant, process))
            else:
                rows = self._connections.query(_ENDS, (self._tenant, process, *ends))
            edges = [
                (SequenceNumber(process, number, start_ns, end_ns, bool(farewell)), opens)
                for number, start_ns, end_ns, farewell, opens in rows
            ]
            if edges:
                found[process] = runs_of(edges)
        return found

    def _gapless(self, process: str) -> tuple[int, int] | None:
        """The first and the last number of a process when none between is missing. What was
        once found whole stays so: then only later numbers are counted."""
        known = self._whole.get(process, (0, 0))
        first, last, later, parted = self._connections.query(
            _SEQUENCE_FROM, (self._tenant, process, known[1])
        ).fetchone()
        if known[1] and first != known[0]:
            self._whole.pop(process, None)
            return self._gapless(process)
        if last is None or parted or later != last - (known[1] or first - 1):
            return None
        if len(self._whole) >= _PROCESSES_KEPT:
            self._whole.clear()
        self._whole[process] = (first, last)
        return first, last
