"""The versions of one record: who wrote each, what changed in it, and who was given it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memtrace_collector.graph import content
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.lookups import Lookups


class Version(NamedTuple):
    """One write of a record. ``text``: None when it was not captured. ``diff``: against the
    write before, empty when either text is not known. ``readers``: who was given this version
    while this write was the one in force, oldest first.
    """

    write: Write
    text: str | None
    diff: tuple[str, ...]
    readers: tuple[Operation, ...]


def versions(lookups: Lookups, graph_id: str, record: str) -> list[Version]:
    """Every write of ``record`` (``kind:id``), in order."""
    writes = lookups.history(graph_id, record)
    users = lookups.record_users(graph_id, [record]).get(record, [])
    values = lookups.reader.values(graph_id, {write.version for write in writes})
    texts = [
        content.expand(values[write.version], values) if write.version in values else None
        for write in writes
    ]
    return [
        Version(write, after, diff(before, after), _readers(index, writes, users))
        for index, (write, before, after) in enumerate(zip(writes, [None, *texts], texts))
    ]


def diff(before: str | None, after: str | None) -> tuple[str, ...]:
    """Lines removed (``-…``) and added (``+…``) between two texts."""
    if before is None or after is None:
        return ()
    old, new = before.splitlines(), after.splitlines()
    changes: list[str] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            changes += [f"-{line}" for line in old[i:j]]
            changes += [f"+{line}" for line in new[k:m]]
    return tuple(changes)


def _readers(
    index: int, writes: Sequence[Write], users: Iterable[Operation]
) -> tuple[Operation, ...]:
    """A text may return: its readers are then told apart by time."""
    version = writes[index].version
    earlier = any(write.version == version for write in writes[:index])
    first = writes[index].operation.start_ns if earlier else 0
    again = (w.operation.start_ns for w in writes[index + 1 :] if w.version == version)
    last = min(again, default=2**63)
    read = [u for u in users if version in u.delivered and first <= u.start_ns < last]
    return tuple(sorted(read, key=lambda user: (user.start_ns, user.key)))
