"""The graphs of a tenant in the order in which somebody looks through them."""

from __future__ import annotations

from collections.abc import Collection

from memtrace_collector.graph.reader import GraphReader, GraphSummary

MAX_OTHER_GRAPHS = 200
"""Graphs beside those that something is known to be in that are looked into."""


def latest_first(reader: GraphReader) -> list[GraphSummary]:
    """Every graph, the one written last first."""
    return sorted(reader.graphs(), key=lambda each: (-each.last_ns, each.graph_id))


def latest_others(
    reader: GraphReader, but: Collection[str], limit: int = MAX_OTHER_GRAPHS
) -> list[str]:
    """At most ``limit`` graphs other than these, the one written last first."""
    others = [each.graph_id for each in latest_first(reader) if each.graph_id not in but]
    return others[:limit]
