"""Who uses a record: an index that is filled when there is time, and behind it single rows.

The operations of a graph up to ``graph.indexed`` stand in the table ``user``. What came later is
read from ``uses``, row by row, and kept in memory, where those that come next are added. Small
graphs are never indexed.
"""

from __future__ import annotations

import itertools
import threading
import time
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from memtrace_collector.graph.reader import Near
from memtrace_collector.store import keys
from memtrace_collector.store.connections import Connections, json_list
from memtrace_collector.store.facts_rows import user_rows

INDEXED_FROM = 2_048
"""Operations behind the index from which on filling it pays."""
_KEPT_OPERATIONS = 400_000
"""In memory, of all graphs together: some 100 bytes each."""
_FEW_ENTRIES = 50_000
"""That are sorted again whenever some are added."""
_FILLED_AT_ONCE = 4_096
"""Operations: a tenth of a second or two."""
_STATE = "SELECT indexed, removals FROM graph WHERE id = ?"
_TAIL = "SELECT id, start_ns, keys FROM uses WHERE id > ? AND id <= ? ORDER BY id"
_IN_INDEX = "SELECT number FROM user WHERE graph = ? AND record IN (SELECT value FROM json_each(?))"
_TIMED = (
    "SELECT i.record, i.number, u.start_ns FROM user i"
    " CROSS JOIN uses u ON u.id = i.graph << 36 | i.number"
    " WHERE i.graph = ? AND i.record IN (SELECT value FROM json_each(?))"
)
_NAMES = "SELECT id, trace, span FROM operation WHERE id IN (SELECT value FROM json_each(?))"


class _Use(NamedTuple):
    start_ns: int
    number: int


class _Tail:
    """The operations of a graph after ``after``, and which keys they use."""

    def __init__(self, after: int, removals: int) -> None:
        self.after = after
        self.removals = removals
        self._numbers = array("Q")
        self._starts = array("q")
        # a key in the upper half and the place of an operation in the lower: most are sorted
        self._old = array("Q")
        self._new: list[int] = []
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def until(self) -> int:
        return self._numbers[-1] if self._numbers else self.after

    def add(self, number: int, start_ns: int, packed: bytes) -> None:
        place = len(self._numbers)
        self._numbers.append(number)
        self._starts.append(start_ns)
        self._new += [key << 32 | place for key in keys.unpacked(packed)]
        self._is_sorted = False

    def uses(self, key: int) -> list[_Use]:
        """By number."""
        self._sort()
        found: list[_Use] = []
        for entries in (self._old, self._new):
            first = bisect_left(entries, key << 32)
            last = bisect_left(entries, (key + 1) << 32, first)
            places = (entry & 0xFFFFFFFF for entry in entries[first:last])
            found += [_Use(self._starts[place], self._numbers[place]) for place in places]
        return found

    def _sort(self) -> None:
        if self._is_sorted:
            return
        self._new.sort()
        if len(self._new) > max(_FEW_ENTRIES, len(self._old) // 4):
            self._old = array("Q", sorted([*self._old, *self._new]))
            self._new = []
        self._is_sorted = True


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

    def _late(self, graph: int, wanted: Collection[int]) -> dict[int, list[_Use]]:
        """Uses that are not in the index, by key."""
        state = self._connections.query(_STATE, (graph,)).fetchone()
        if state is None:
            return {}
        with self._lock:
            tail = self._tails.pop(graph, None)
            if tail is None or (tail.after, tail.removals) != tuple(state):
                tail = _Tail(*state)
            span = keys.row_id(graph, tail.until), keys.row_ids(graph)[1]
            for row, start_ns, packed in self._connections.query(_TAIL, span):
                tail.add(keys.number_of(row), start_ns, packed)
            self._keep(graph, tail)
            return {key: uses for key in wanted if (uses := tail.uses(key))}

    def _keep(self, graph: int, tail: _Tail) -> None:
        """The last asked for stays, as it is what is asked for next; but nothing too large."""
        if len(tail) > _KEPT_OPERATIONS:
            return
        self._tails[graph] = tail
        while sum(map(len, self._tails.values())) > _KEPT_OPERATIONS:
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
