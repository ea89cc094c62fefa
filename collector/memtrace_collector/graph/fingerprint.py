"""The hash of a graph: equal for equal sets of facts, whatever the order they came in. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from memtrace_collector.graph.facts import Flag, Operation, Value

_encode = msgspec.json.Encoder(order="deterministic").encode


def graph_hash(
    operations: Iterable[Operation], values: Iterable[Value], flags: Iterable[Flag]
) -> str:
    """SHA-256, in hex, over the canonical facts of one graph."""
    total = hashlib.sha256()
    for name, items in (("operation", operations), ("value", values), ("flag", flags)):
        for line in sorted(_encode(item) for item in items):
            total.update(f"{name} {len(line)} ".encode())
            total.update(line)
    return total.hexdigest()
