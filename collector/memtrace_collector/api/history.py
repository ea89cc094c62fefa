"""The life of one record, as an answer of the API."""

from __future__ import annotations

from collections.abc import Iterable

from memtrace_collector.api.questions import Json
from memtrace_collector.api.shapes import span_json, time_json
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.references import ancestry_inputs
from memtrace_collector.graph.versions import Version


def history_json(graph_id: str, record: str, versions: Iterable[Version]) -> Json:
    """The versions in order, numbered from 1."""
    numbered = [_version_json(number, version) for number, version in enumerate(versions, 1)]
    return {"graph_id": graph_id, "record": record, "versions": numbered}


def _version_json(number: int, version: Version) -> Json:
    operation = version.write.operation
    return {
        "number": number,
        "ref": version.write.version,
        "step": operation.step,
        **_operation_json(operation),
        "sources": list(ancestry_inputs(operation, version.write.version)),
        "supersedes": list(operation.supersedes),
        "text": version.text,
        "diff": list(version.diff),
        "readers": [_operation_json(reader) for reader in version.readers],
    }


def _operation_json(operation: Operation) -> Json:
    return {
        "name": operation.name,
        "service": operation.service,
        "operation": str(operation.key),
        "span": span_json(operation.key),
        "time": time_json(operation.start_ns),
    }
