"""Who uses a record: an index that is filled when there is time, and behind it single rows.

The operations of a graph up to ``graph.indexed`` stand in the table ``user``. What came later is
read from ``uses``, row by row, and kept by record in memory as long as it is little. Small graphs
are never indexed.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph.reader import Near
from memtrace_collector.store import keys
from memtrace_collector.store.connections import Connections, json_list
from memtrace_collector.store.facts_rows import user_rows

INDEXED_FROM = 2_048
"""Operations behind the index from which on filling it pays."""
_KEPT_TAIL = 16_384
_KEPT_OPERATIONS = 65_536
"""In memory, of all graphs together."""
_FILLED_AT_ONCE = 8_192
"""Operations: a tenth to half a second."""
_STATE = "SELECT indexed, removals FROM graph WHERE id = ?"
_TAIL = "SELECT id, start_ns, keys FROM uses WHERE id > ? AND id <= ? ORDER BY id"
_IN_INDEX = "SELECT number FROM user WHERE graph = ? AND record IN (SELECT value FROM json_each(?))"
_TIMED = (
    "SELECT i.record, i.number, u.start_ns FROM user i"
    " CROSS JOIN uses u ON u.id = i.graph << 40 | i.number"
    " WHERE i.graph = ? AND i.record IN (SELECT value FROM json_each(?))"
)
_NAMES = "SELECT id, trace, span FROM operation WHERE id IN (SELECT value FROM json_each(?))"


class _Use(NamedTuple):
    start_ns: int
    number: int


@dataclass(slots=True)
class _Tail:
    """The operations after ``after``, by the keys that they use."""

    after: int
    removals: int
    until: int
    operations: int = 0
    by_key: dict[int, list[_Use]] = field(default_factory=lambda: defaultdict(list))


class UserIndex:
    """Finds operations by the keys of :func:`keys.use_keys`. Safe in any number of threads."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        self._tails: OrderedDict[int, _Tail] = OrderedDict()
        self._nothing_until = -1
        """No graph was worth filling at this change."""

    def users(self, graph: int, wanted: Collection[int]) -> set[int]:
        """Ids of the operations of a graph that use any of these keys."""
        late = self._late(graph, wanted)  # first: what moves into the index meanwhile is in both
        numbers = {use.number for uses in late.values() for use in uses}
        rows = self._connections.query(_IN_INDEX, (graph, json_list(wanted)))
        numbers.update(row[0] for row in rows)
        return {keys.row_id(graph, number) for number in numbers}

    def users_near(self, graph: int, wanted: Collection[int], near: Near) -> set[int]:
        """As :meth:`users`, of each key only those that ``near`` wants."""
        late = self._late(graph, wanted)
        uses: dict[int, set[_Use]] = {key: set(found) for key, found in late.items()}
        for key, number, start_ns in self._connections.query(_TIMED, (graph, json_list(wanted))):
            uses.setdefault(key, set()).add(_Use(start_ns, number))
        chosen: set[int] = set()
        for of_key in uses.values():
            chosen.update(_near(self._in_order(graph, of_key), near))
        return {keys.row_id(graph, number) for number in chosen}

    def fill(self, seconds: float) -> bool:
        """Index long tails for about so long; True while some is left."""
        deadline = time.monotonic() + seconds
        change = self._last_change()
        if change == self._nothing_until:
            return False
        while True:
            row = self._connections.query(
                "SELECT id FROM graph WHERE unindexed >= ? ORDER BY unindexed DESC LIMIT 1",
                (INDEXED_FROM,),
            ).fetchone()
            if row is None:
                self._nothing_until = change
                return False
            self._fill_slice(row[0])
            if time.monotonic() > deadline:
                return True

    def _fill_slice(self, graph: int) -> None:
        with self._connections.transaction() as connection:
            (indexed,) = connection.execute(
                "SELECT indexed FROM graph WHERE id = ?", (graph,)
            ).fetchone()
            rows = connection.execute(
                "SELECT id, keys FROM uses WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
                (keys.row_id(graph, indexed), keys.row_ids(graph)[1], _FILLED_AT_ONCE),
            ).fetchall()
            numbered = [(keys.number_of(row), packed) for row, packed in rows]
            indexed_rows = (row for each in numbered for row in user_rows(graph, *each))
            connection.executemany(
                "INSERT OR IGNORE INTO user VALUES (?,?,?)", sorted(indexed_rows)
            )
            left = len(rows) == _FILLED_AT_ONCE
            connection.execute(
                "UPDATE graph SET indexed = ?, unindexed = max(0, unindexed - ?) * ? WHERE id = ?",
                (numbered[-1][0] if numbered else indexed, len(rows), left, graph),
            )

    def _late(self, graph: int, wanted: Collection[int]) -> dict[int, Iterable[_Use]]:
        """Uses that are not in the index, by key."""
        state = self._connections.query(_STATE, (graph,)).fetchone()
        if state is None:
            return {}
        with self._lock:
            tail = self._tails.pop(graph, None)
            if tail is None or (tail.after, tail.removals) != tuple(state):
                tail = _Tail(state[0], state[1], state[0])
            for row, start_ns, packed in self._rows(graph, tail.until):
                number = keys.number_of(row)
                for key in keys.unpacked(packed):
                    tail.by_key[key].append(_Use(start_ns, number))
                tail.until = number
                tail.operations += 1
                if tail.operations > _KEPT_TAIL:
                    return self._scanned(graph, tail.after, wanted)
            self._keep(graph, tail)
            return {key: list(tail.by_key[key]) for key in wanted if key in tail.by_key}

    def _scanned(
        self, graph: int, after: int, wanted: Collection[int]
    ) -> dict[int, Iterable[_Use]]:
        """What is too much to be kept is looked through."""
        asked = set(wanted)
        found: dict[int, Iterable[_Use]] = {}
        by_key: dict[int, list[_Use]] = defaultdict(list)
        for row, start_ns, packed in self._rows(graph, after):
            for key in asked.intersection(keys.unpacked(packed)):
                by_key[key].append(_Use(start_ns, keys.number_of(row)))
        found.update(by_key)
        return found

    def _rows(self, graph: int, after: int) -> Iterator[tuple[int, int, bytes]]:
        span = keys.row_id(graph, after), keys.row_ids(graph)[1]
        return self._connections.query(_TAIL, span)

    def _keep(self, graph: int, tail: _Tail) -> None:
        self._tails[graph] = tail
        while sum(each.operations for each in self._tails.values()) > _KEPT_OPERATIONS:
            self._tails.popitem(last=False)

    def _in_order(self, graph: int, uses: Collection[_Use]) -> list[_Use]:
        """By start, trace and span; names are read only for those that started together."""
        ordered = sorted(uses)
        together = {
            keys.row_id(graph, use.number)
            for one, other in itertools.pairwise(ordered)
            if one.start_ns == other.start_ns
            for use in (one, other)
        }
        if together:
            names = {
                keys.number_of(row): (trace, span)
                for row, trace, span in self._connections.query(_NAMES, (json_list(together),))
            }
            ordered.sort(key=lambda use: (use.start_ns, names.get(use.number, (b"", b""))))
        return ordered

    def _last_change(self) -> int:
        row = self._connections.query(
            "SELECT value FROM counter WHERE name = 'operation'"
        ).fetchone()
        return int(row[0]) if row else 0


def _near(uses: list[_Use], near: Near) -> Iterator[int]:
    """Numbers of the uses that stand first, or around a moment."""
    earlier = sum(use.start_ns <= near.at_ns for use in uses)
    for place, use in enumerate(uses, 1):
        if place <= near.first or earlier - near.before < place <= earlier + near.after:
            yield use.number
