"""The graphs that a form offers, the one written last first."""

from __future__ import annotations

from memtrace_collector.api.questions import Json
from memtrace_collector.graph.latest import latest_first
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.reader import GraphReader

MAX_OFFERED = 200
"""Of more graphs the id is typed."""


def graphs_json(reader: GraphReader) -> Json:
    """``{"items": [{"graph_id", "operations"}], "total"}``."""
    summaries = latest_first(reader)
    items = [
        {"graph_id": each.graph_id, "operations": each.operations}
        for each in summaries[:MAX_OFFERED]
    ]
    return {"items": items, "total": len(summaries)}


def chosen_graph(reader: GraphReader, asked: str) -> str:
    """The graph that is asked for, else the one written last; empty when there is none.

    Raises:
        NotFoundError: there is no such graph.
    """
    if asked:
        known_graph(reader, asked)
        return asked
    return next((each.graph_id for each in latest_first(reader)), "")
