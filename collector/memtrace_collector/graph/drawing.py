"""A graph as DOT or GraphML, by way of networkx."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import networkx as nx

from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.network import OPERATION, as_networkx
from memtrace_collector.graph.render import CONTROL, Parents, one_line

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def draw(operations: Sequence[Operation], parents: Parents, output_format: str) -> str:
    """The operations, in order, as ``dot`` or ``graphml``."""
    graph = as_networkx(operations, parents)
    lines = _dot(graph) if output_format == "dot" else nx.generate_graphml(_xml_safe(graph))
    return "\n".join(lines) + "\n"


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
    escaped = CONTROL.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
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
