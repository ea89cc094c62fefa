"""The versions of one record: who wrote each, what changed in it, and who was given it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from memtrace_collector.graph import content
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.readings import Reading, by_write, met_by, readings


class Version(NamedTuple):
    """One write of a record. ``text``: None when it was not captured. ``diff``: against the
    write before, empty when either text is not known. ``readers``: who was given this version
    while this write was the one in force, oldest first.
    """

    write: Write
    text: str | None
    diff: tuple[str, ...]
    readers: tuple[Reading, ...]


def versions(lookups: Lookups, graph_id: str, record: str) -> list[Version]:
    """Every write of ``record`` (``kind:id``), in order."""
    writes = lookups.history(graph_id, record)
    met = readings(record, met_by(lookups, graph_id, record) if writes else ())
    readers = by_write(writes, (item for item in met if not item.reason))
    texts = texts_of(lookups, graph_id, writes)
    return [
        Version(write, after, diff(before, after), tuple(read))
        for write, before, after, read in zip(writes, [None, *texts], texts, readers)
    ]


def texts_of(lookups: Lookups, graph_id: str, writes: Sequence[Write]) -> list[str | None]:
    """What each write made of the record; None where that was not captured."""
    values = lookups.reader.values(graph_id, {write.version for write in writes})
    return [
        content.expand(values[write.version], values) if write.version in values else None
        for write in writes
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
