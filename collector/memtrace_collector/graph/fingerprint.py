"""The hash of a graph: equal for equal sets of facts, whatever the order they came in. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from memtrace_collector.graph.facts import Flag, Operation, Value

_encode = msgspec.json.Encoder(order="deterministic").encode


class _Named(Operation, frozen=True, kw_only=True, array_like=False):
    """An operation that is encoded with the names of its fields."""


def graph_hash(
    operations: Iterable[Operation], values: Iterable[Value], flags: Iterable[Flag]
) -> str:
    """SHA-256, in hex, over the canonical facts of one graph."""
    total = hashlib.sha256()
    named = (_Named(**msgspec.structs.asdict(operation)) for operation in operations)
    for name, items in (("operation", named), ("value", values), ("flag", flags)):
        for line in sorted(_encode(item) for item in items):
            total.update(f"{name} {len(line)} ".encode())
            total.update(line)
    return total.hexdigest()
