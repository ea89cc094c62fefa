"""Who met a record in a search: as which candidate, and while which write was in force."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation, by_time
from memtrace_collector.graph.latest import latest_others
from memtrace_collector.graph.lookups import Lookups
from memtrace_otel import variables


class Reading(NamedTuple):
    """One candidate of one read. ``rank`` from 1, None where the sender did not say; ``reason``:
    why it was cut, empty when it was delivered."""

    operation: Operation
    ref: str
    rank: int | None
    score: float | None
    reason: str = ""


def met_by(lookups: Lookups, graph_id: str, record: str) -> list[Operation]:
    """Every operation that met a version of ``record`` (``kind:id``), oldest first; of the
    latest other graphs, where it is no record of their own."""
    found = list(lookups.record_users(graph_id, [record]).get(record, ()))
    for other in latest_others(lookups.reader, [graph_id]):
        met = lookups.record_users(other, [record]).get(record, ())
        own = met and lookups.writers(other, [record])
        found += [item for item in met if graph_id in item.reads or not own]
    return sorted(found, key=by_time)


def readings(record: str, users: Iterable[Operation]) -> list[Reading]:
    """The candidates that are versions of ``record``, in the order of ``users``. Pure.

    Of a composite only those that no stage of its trace had.
    """
    found = [item for user in users for item in _candidates(record, user)]
    staged = {(item.operation.trace_id, item.ref) for item in found if not item.operation.composite}
    return [
        item
        for item in found
        if not (item.operation.composite and (item.operation.trace_id, item.ref) in staged)
    ]


class Places:
    """Which write of a record made the version that was met at a moment: a text may return, and
    is then told apart by time."""

    def __init__(self, writes: Sequence[Write]) -> None:
        self._places: dict[str, list[int]] = {}
        for place, write in enumerate(writes):
            self._places.setdefault(write.version, []).append(place)
        self._since = {
            version: list(accumulate((writes[place].operation.start_ns for place in made[1:]), max))
            for version, made in self._places.items()
        }

    def at(self, ref: str, at_ns: int) -> int | None:
        """The place of the write, from 0; None for a version that nobody was seen to write."""
        made = self._places.get(ref)
        return None if made is None else made[bisect_right(self._since[ref], at_ns)]


def by_write(writes: Sequence[Write], found: Iterable[Reading]) -> list[list[Reading]]:
    """For each write the readings of its version."""
    places = Places(writes)
    grouped: list[list[Reading]] = [[] for _ in writes]
    for item in found:
        place = places.at(item.ref, item.operation.start_ns)
        if place is not None:
            grouped[place].append(item)
    return grouped


def _candidates(record: str, user: Operation) -> Iterator[Reading]:
    scores = (*user.scores, *([None] * len(user.delivered)))
    for rank, (ref, score) in enumerate(zip(user.delivered, scores), 1):
        if variables.record_of(ref) == record:
            yield Reading(user, ref, rank, score)
    for cut in user.dropped:
        if variables.record_of(cut.ref) == record:
            yield Reading(user, cut.ref, cut.rank, cut.score, cut.reason or "other")
