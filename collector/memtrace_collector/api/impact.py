"""What is derived from something, as an answer of the API."""

from __future__ import annotations

from collections.abc import Mapping

from memtrace_collector.api.questions import Json
from memtrace_collector.api.shapes import span_json
from memtrace_collector.graph.impact import Impact


def impact_json(target: str, found: Impact, texts: Mapping[str, str]) -> Json:
    """``target`` as it was asked for; ``texts`` by reference."""
    return {
        "target": target,
        "derived": [
            {
                "kind": item.ref.partition(":")[0],
                "ref": item.ref,
                "graph_id": item.operation.graph_id,
                "operation": str(item.operation.key),
                "text": texts.get(item.ref),
            }
            for item in found.derived
        ],
        "records": found.records,
        "answers": [span_json(key) for key in found.answers],
        "complete": found.complete,
    }
