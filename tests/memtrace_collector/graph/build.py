"""Small operations for tests of the graph: what is not said has a plain default."""

from __future__ import annotations

from typing import Any

from memtrace_collector.graph.facts import Operation, OperationKey, Sequence, SpanFacts, Value

SECOND = 1_000_000_000
GRAPH = "user:ada"


def trace(name: str) -> str:
    return name.encode().hex().ljust(32, "0")[:32]


def span(name: str) -> str:
    return name.encode().hex().ljust(16, "0")[:16]


def key(path: str) -> OperationKey:
    """``trace/span`` by their short names."""
    trace_name, _, span_name = path.partition("/")
    return OperationKey(trace(trace_name), span(span_name))


def operation(path: str, step: str, at: float, **fields: Any) -> Operation:
    """``path`` is ``trace/span``, ``at`` and ``took`` are seconds, ``parent`` a span's name."""
    parent = fields.pop("parent", "")
    took = fields.pop("took", 0.001)
    start_ns = int(at * SECOND)
    sequence = fields.pop("seq", None)
    fields.setdefault("graph_id", GRAPH)
    fields.setdefault("digest", f"{path}{fields}")
    return Operation(
        trace_id=key(path).trace_id,
        span_id=key(path).span_id,
        parent_span_id=span(parent) if parent else "",
        name=fields.pop("name", step),
        step=step,
        start_ns=start_ns,
        end_ns=start_ns + int(took * SECOND),
        sequence=Sequence(*sequence) if sequence else None,
        **{name: tuple(item) if isinstance(item, list) else item for name, item in fields.items()},
    )


def facts(*operations: Operation, values: dict[str, str] | None = None) -> list[SpanFacts]:
    graph_id = operations[0].graph_id if operations else GRAPH
    items = [
        Value(graph_id=graph_id, ref=ref, content=text) for ref, text in (values or {}).items()
    ]
    return [SpanFacts(operation=item) for item in operations] + [SpanFacts(values=tuple(items))]
