"""Everything derived from something: what a correction or a deletion has to reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from memtrace_collector.api.questions import Json
from memtrace_collector.api.shapes import span_json
from memtrace_collector.graph import content
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.forward import Downstream, downstream
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Occurrence
from memtrace_otel import semconv, variables

MAX_OPERATIONS = 20_000


def impact(lookups: Lookups, target: str, start: Sequence[Occurrence]) -> Json:
    """What was made, chosen or answered from the occurrences ``start``, through all graphs."""
    graph_ids = [summary.graph_id for summary in lookups.reader.graphs()]
    found = downstream(lookups, start, graph_ids, MAX_OPERATIONS)
    started = {(item.ref, item.operation.key) for item in start}
    derived = [
        item for item in found.occurrences.values() if (item.ref, item.operation.key) not in started
    ]
    derived.sort(key=lambda item: (item.operation.start_ns, item.ref))
    return _result(lookups, target, derived, found)


def occurrences_of(lookups: Lookups, name: str) -> list[Occurrence]:
    """Where a reference, or any version of a record (``kind:id``), was produced."""
    record = variables.record_of(name)
    exact = "@" in name
    found: list[Occurrence] = []
    for summary in lookups.reader.graphs():
        for operation in lookups.writers(summary.graph_id, [record]).get(record, ()):
            refs = [ref for ref in operation.outputs if _is_meant(ref, name, record, exact)]
            found.extend(Occurrence(ref, operation) for ref in refs)
    return found


def outputs_of(operations: Iterable[Operation]) -> list[Occurrence]:
    """Everything these operations produced."""
    return [Occurrence(ref, operation) for operation in operations for ref in operation.outputs]


def _is_meant(ref: str, name: str, record: str, exact: bool) -> bool:
    return ref == name if exact else variables.record_of(ref) == record


def _result(
    lookups: Lookups, target: str, derived: Sequence[Occurrence], found: Downstream
) -> Json:
    texts = _texts(lookups, derived)
    records = (
        variables.record_of(item.ref) for item in derived if _kind(item.ref) == semconv.KIND_MEMORY
    )
    answers = {
        item.operation.key: None for item in derived if _kind(item.ref) == semconv.KIND_ANSWER
    }
    return {
        "target": target,
        "derived": [
            {
                "kind": _kind(item.ref),
                "ref": item.ref,
                "graph_id": item.operation.graph_id,
                "operation": str(item.operation.key),
                "text": texts.get(item.ref),
            }
            for item in derived
        ],
        "records": list(dict.fromkeys(records)),
        "answers": [span_json(key) for key in answers],
        "complete": not found.truncated,
    }


def _texts(lookups: Lookups, items: Iterable[Occurrence]) -> dict[str, str]:
    by_graph: dict[str, set[str]] = defaultdict(set)
    for item in items:
        by_graph[item.operation.graph_id].add(item.ref)
    return {
        ref: content.plain_text(value)
        for graph_id, refs in by_graph.items()
        for ref, value in lookups.reader.values(graph_id, refs).items()
    }


def _kind(ref: str) -> str:
    return ref.partition(":")[0]
