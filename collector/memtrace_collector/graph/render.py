"""A graph, or the part of it that was loaded, as text, JSON, DOT or GraphML.

Names and contents come from outside: every format escapes them, and the text for terminals
holds no control characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone

import networkx as nx

from memtrace_collector.graph import content
from memtrace_collector.graph.ancestry import parents_of
from memtrace_collector.graph.facts import Operation, OperationKey, Value
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.network import OPERATION, as_networkx
from memtrace_collector.graph.references import named_by

FORMATS = ("text", "json", "dot", "graphml")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SHOWN_CHARS = 120
_Parents = Mapping[OperationKey, tuple[OperationKey, ...]]


def render(
    lookups: Lookups, graph_id: str, operations: Sequence[Operation], output_format: str
) -> str:
    """The operations as a document of one of :data:`FORMATS`.

    Raises:
        ValueError: the format is not known.
    """
    ordered = sorted(operations, key=lambda o: (o.start_ns, o.trace_id, o.span_id))
    if output_format == "text":
        return "\n".join(_text(graph_id, ordered, _values(lookups, ordered))) + "\n"
    parents = parents_of(lookups, ordered)
    if output_format == "json":
        return _json(graph_id, ordered, parents, _values(lookups, ordered))
    if output_format == "dot":
        return "\n".join(_dot(as_networkx(ordered, parents))) + "\n"
    if output_format == "graphml":
        return "\n".join(nx.generate_graphml(_xml_safe(as_networkx(ordered, parents)))) + "\n"
    raise ValueError(f"unknown format {output_format!r}: one of {', '.join(FORMATS)}")


def one_line(text: str, limit: int = _SHOWN_CHARS) -> str:
    """Safe for a terminal: control and direction characters become spaces."""
    cleaned = _CONTROL.sub(" ", text)
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
    parents: _Parents,
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


def _dot(graph: nx.MultiDiGraph) -> Iterator[str]:
    yield "digraph memory {"
    yield "  rankdir=LR;"
    for node, data in graph.nodes(data=True):
        is_operation = data["node_kind"] == OPERATION
        label = f"{data['step']}: {data['name']}" if is_operation else node
        shape = "box" if is_operation else "ellipse"
        yield f"  {_quoted(node)} [label={_quoted(one_line(label))}, shape={shape}];"
    for source, target, data in graph.edges(data=True):
        yield f"  {_quoted(source)} -> {_quoted(target)} [label={_quoted(data['relation'])}];"
    yield "}"


def _quoted(text: str) -> str:
    escaped = _CONTROL.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _xml_safe(graph: nx.MultiDiGraph) -> nx.MultiDiGraph:
    """GraphML escapes markup, but some characters no XML document may hold."""
    safe = nx.MultiDiGraph()
    for node, data in graph.nodes(data=True):
        safe.add_node(_xml_text(node), **{key: _xml_value(item) for key, item in data.items()})
    for source, target, data in graph.edges(data=True):
        attributes = {key: _xml_value(item) for key, item in data.items()}
        safe.add_edge(_xml_text(source), _xml_text(target), **attributes)
    return safe


def _xml_value(value: object) -> object:
    # as text: GraphML's int is 32 bits, a time in nanoseconds is not
    return value if isinstance(value, bool) else _xml_text(str(value))


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
