"""The loaded part of a graph as a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import networkx as nx

from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_otel import variables

OPERATION, VARIABLE = "operation", "variable"
PRODUCED, USED, SHOWN, DELIVERED, DROPPED = "produced", "used", "shown", "delivered", "dropped"
SUPERSEDED, FOLLOWS = "superseded", "follows"


def as_networkx(
    operations: Iterable[Operation],
    parents: Mapping[OperationKey, tuple[OperationKey, ...]] | None = None,
) -> nx.MultiDiGraph:
    """Nodes: operations (``trace:span``) and variable versions (their reference). Edges run
    the way information flows, attribute ``relation``; ``parents`` adds resolved ancestry
    between operations as ``follows``."""
    graph = nx.MultiDiGraph()
    items = list(operations)
    for operation in items:
        _add_operation(graph, operation)
    known = {operation.key for operation in items}
    for key, sources in (parents or {}).items():
        for source in sources:
            if key in known and source in known:
                graph.add_edge(str(source), str(key), relation=FOLLOWS)
    return graph


def _add_operation(graph: nx.MultiDiGraph, operation: Operation) -> None:
    node = str(operation.key)
    graph.add_node(
        node,
        node_kind=OPERATION,
        name=operation.name,
        step=operation.step,
        service=operation.service,
        graph_id=operation.graph_id,
        start_ns=operation.start_ns,
        end_ns=operation.end_ns,
        error_type=operation.error_type,
        composite=operation.composite,
    )
    incoming = (
        (USED, operation.inputs),
        (SHOWN, operation.shown),
        (DROPPED, tuple(item.ref for item in operation.dropped)),
        (SUPERSEDED, operation.supersedes),
        (DELIVERED, operation.delivered),
    )
    for relation, refs in incoming:
        for ref in refs:
            _add_variable(graph, ref)
            graph.add_edge(ref, node, relation=relation)
    for ref in operation.outputs:
        _add_variable(graph, ref)
        graph.add_edge(node, ref, relation=PRODUCED)
    for edge in operation.edges:
        _add_variable(graph, edge.input)
        _add_variable(graph, edge.output)
        graph.add_edge(edge.input, edge.output, relation=edge.relation, through=node)


def _add_variable(graph: nx.MultiDiGraph, ref: str) -> None:
    if ref not in graph:
        graph.add_node(
            ref,
            node_kind=VARIABLE,
            variable_kind=ref.partition(":")[0],
            record=variables.record_of(ref),
            version=variables.version_of(ref),
        )
