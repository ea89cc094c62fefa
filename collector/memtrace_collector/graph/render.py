"""A graph, or the part of it that was loaded, as text, JSON, DOT or GraphML.

Names and contents come from outside: every format escapes them, and the text for terminals
holds no control characters.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone

from memtrace_collector.graph import content
from memtrace_collector.graph.ancestry import parents_of
from memtrace_collector.graph.facts import Operation, OperationKey, Value, by_time
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.references import named_by

FORMATS = ("text", "json", "dot", "graphml")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SHOWN_CHARS = 120
_DRAWING = "memtrace_collector.graph.drawing"
"""Apart: networkx takes long to import, and few ask for a drawing."""
Parents = Mapping[OperationKey, tuple[OperationKey, ...]]
_Draw = Callable[[Sequence[Operation], Parents, str], str]


def render(
    lookups: Lookups, graph_id: str, operations: Sequence[Operation], output_format: str
) -> str:
    """The operations as a document of one of :data:`FORMATS`.

    Raises:
        ValueError: the format is not known.
    """
    ordered = sorted(operations, key=by_time)
    if output_format == "text":
        return "\n".join(_text(graph_id, ordered, _values(lookups, ordered))) + "\n"
    parents = parents_of(lookups, ordered)
    if output_format == "json":
        return _json(graph_id, ordered, parents, _values(lookups, ordered))
    if output_format in FORMATS:
        draw: _Draw = importlib.import_module(_DRAWING).draw
        return draw(ordered, parents, output_format)
    raise ValueError(f"unknown format {output_format!r}: one of {', '.join(FORMATS)}")


def one_line(text: str, limit: int = _SHOWN_CHARS) -> str:
    """Safe for a terminal: control and direction characters become spaces."""
    cleaned = CONTROL.sub(" ", text)
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def _values(lookups: Lookups, operations: Iterable[Operation]) -> dict[str, Value]:
    wanted: dict[str, set[str]] = {}
    for operation in operations:
        for graph_id in (operation.graph_id, *operation.reads):
            wanted.setdefault(graph_id, set()).update(named_by(operation))
    values: dict[str, Value] = {}
    for graph_id, refs in wanted.items():
        for ref, value in lookups.reader.values(graph_id, refs).items():
            values.setdefault(ref, value)
    return values


def _text(
    graph_id: str, operations: Sequence[Operation], values: Mapping[str, Value]
) -> Iterator[str]:
    yield f"graph {one_line(graph_id)}: {len(operations)} operations"
    for operation in operations:
        moment = datetime.fromtimestamp(operation.start_ns / 1e9, timezone.utc)
        name = one_line(operation.name)
        yield f"{moment:%Y-%m-%d %H:%M:%S}  {operation.step:<11} {name}  {operation.key}"
        for label, refs in _parts(operation):
            for ref in refs:
                value = values.get(ref)
                known = f"  {one_line(content.expand(value, values))}" if value else ""
                yield f"    {label:<10} {one_line(ref)}{known}"


def _parts(operation: Operation) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        ("used", operation.inputs),
        ("shown", operation.shown),
        ("delivered", operation.delivered),
        ("dropped", tuple(item.ref for item in operation.dropped)),
        ("superseded", operation.supersedes),
        ("produced", operation.outputs),
    )


def _json(
    graph_id: str,
    operations: Sequence[Operation],
    parents: Parents,
    values: Mapping[str, Value],
) -> str:
    document = {
        "graph_id": graph_id,
        "operations": [_operation_json(item, parents.get(item.key, ())) for item in operations],
        "values": {ref: content.expand(value, values) for ref, value in sorted(values.items())},
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _operation_json(operation: Operation, parents: Sequence[OperationKey]) -> dict[str, object]:
    return {
        "traceId": operation.trace_id,
        "spanId": operation.span_id,
        "graph_id": operation.graph_id,
        "name": operation.name,
        "step": operation.step,
        "service": operation.service,
        "start_ns": operation.start_ns,
        "end_ns": operation.end_ns,
        "composite": operation.composite,
        "response_id": operation.response_id,
        **{label: list(refs) for label, refs in _parts(operation)},
        "decisions": [list(item) for item in operation.decisions],
        "edges": [list(item) for item in operation.edges],
        "parents": [{"traceId": key.trace_id, "spanId": key.span_id} for key in parents],
    }
