"""The life of one record: its write events in order. Pure.

Order: an explicit predecessor (``supersedes``) first, then time; equal times are ordered by
what later reads delivered. A text may return and is then current again, by its last writer.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.trace_tree import TraceTree
from memtrace_otel import semconv, variables

_UNSEEN = 2**63


def order_writes(
    record: str, writers: Iterable[Operation], readers: Iterable[Operation] = ()
) -> tuple[Write, ...]:
    """The writes of ``record`` (``kind:id``), first to last.

    Args:
        record: the record.
        writers: every operation that produced a version of it; of nested ones only the
            innermost counts.
        readers: operations that delivered a version, to order equal times.
    """
    events = _events(record, writers)
    first_reads = _first_reads(record, readers) if len(events) > 1 else {}
    events.sort(key=lambda write: _rank(write, first_reads))
    return tuple(events[index] for index in _topological(events, _predecessors(record, events)))


def has_ties(record: str, writers: Iterable[Operation]) -> bool:
    """Do two writes of the record carry the same start time?"""
    starts = [write.operation.start_ns for write in _events(record, writers)]
    return len(starts) != len(set(starts))


def current_at(writes: Sequence[Write], at_ns: int) -> Write | None:
    """The write in force at a moment: the last in order that had started by then."""
    return next((write for write in reversed(writes) if write.operation.start_ns <= at_ns), None)


def home_of(writes: Sequence[Write], graph_ids: Sequence[str]) -> str:
    """The graph that a record lives in, for whoever met it in the first of ``graph_ids`` and reads
    the others: the first of these in which it was written, else the one in which it was written
    last; the first when nobody was seen to write it."""
    written = {write.operation.graph_id for write in writes}
    last = [write.operation.graph_id for write in writes[-1:]]
    return next((each for each in graph_ids if each in written), [*last, *graph_ids][0])


def is_deleted(reference: str) -> bool:
    return variables.version_of(reference) == semconv.DELETED_VERSION


def _events(record: str, writers: Iterable[Operation]) -> list[Write]:
    by_trace: dict[str, list[Operation]] = {}
    for operation in {operation.key: operation for operation in writers}.values():
        by_trace.setdefault(operation.trace_id, []).append(operation)
    events: list[Write] = []
    for operations in by_trace.values():
        several = len(operations) > 1
        for operation in TraceTree(operations).innermost(operations) if several else operations:
            events.extend(
                Write(ref, operation)
                for ref in operation.outputs
                if variables.record_of(ref) == record
            )
    return events


def _first_reads(record: str, readers: Iterable[Operation]) -> dict[str, int]:
    first: dict[str, int] = {}
    for reader in readers:
        for ref in reader.delivered:
            if variables.record_of(ref) == record:
                first[ref] = min(first.get(ref, _UNSEEN), reader.start_ns)
    return first


def _rank(write: Write, first_reads: dict[str, int]) -> tuple[int, int, int, str, str]:
    operation = write.operation
    # what was read soonest after a tie was the last written, so it sorts after the others
    soonest = -first_reads.get(write.version, _UNSEEN)
    number = operation.sequence.number if operation.sequence else 0
    return operation.start_ns, soonest, number, operation.trace_id, operation.span_id


def _predecessors(record: str, events: Sequence[Write]) -> list[int | None]:
    """For each event the one whose version it says it replaced: the latest of them before it
    in time, else (clocks disagree) the earliest."""
    made: dict[str, list[int]] = {}
    for index, event in enumerate(events):
        made.setdefault(event.version, []).append(index)
    return [
        _predecessor(index, [made.get(ref, []) for ref in _replaced(record, event)])
        for index, event in enumerate(events)
    ]


def _replaced(record: str, event: Write) -> set[str]:
    return {
        ref
        for ref in event.operation.supersedes
        if variables.record_of(ref) == record and ref != event.version
    }


def _predecessor(index: int, made: Sequence[Sequence[int]]) -> int | None:
    """``made``: for each version replaced, the events that made it, in order of time."""
    before = [items[place - 1] for items in made if (place := bisect_left(items, index))]
    if before:
        return max(before)
    return min((items[0] for items in made if items), default=None)


def _topological(events: Sequence[Write], predecessors: Sequence[int | None]) -> list[int]:
    followers: dict[int, list[int]] = {}
    waiting: set[int] = set()
    for index, predecessor in enumerate(predecessors):
        if predecessor is not None:
            followers.setdefault(predecessor, []).append(index)
            waiting.add(index)
    ready = [index for index in range(len(events)) if index not in waiting]
    heapq.heapify(ready)
    order: list[int] = []
    while len(order) < len(events):
        if not ready:
            # contradictory predecessors: time decides where to break the circle
            ready.append(min(waiting))
            waiting.discard(ready[0])
        index = heapq.heappop(ready)
        order.append(index)
        for follower in followers.get(index, ()):
            if follower in waiting:
                waiting.discard(follower)
                heapq.heappush(ready, follower)
    return order
