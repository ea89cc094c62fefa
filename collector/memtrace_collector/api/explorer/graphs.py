"""The graphs that there are, as the page lists them."""

from __future__ import annotations

from memtrace_collector.api.explorer.view import Parameters
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json


def graphs(stores: Stores, _: Parameters) -> Json:
    """``{"graphs": [{"graph_id", "operations", "first_ns", "last_ns"}]}``."""
    return {"graphs": [dict(summary._asdict()) for summary in stores.graphs.graphs()]}
