"""In which column each node of a drawing stands: every link leads to the right. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import networkx as nx

Ends = tuple[str, str]


def columns(nodes: Sequence[str], links: Iterable[Ends]) -> dict[str, int]:
    """Node -> column from 0, by the longest way that leads to it.

    A node that nothing leads to, or from which more goes on than came, stands as close to what
    follows as it can. Of links in a circle (a record that got its old text back) those that run
    against the order of ``nodes`` do not count.

    Args:
        nodes: in the order of time; equal arguments give equal columns.
        links: source and target, both among the nodes.
    """
    graph = _without_circles(nodes, links)
    found: dict[str, int] = {}
    for number, generation in enumerate(nx.topological_generations(graph)):
        found.update(dict.fromkeys(generation, number))
    for node in sorted(found, key=found.__getitem__, reverse=True):
        following = graph.out_degree(node)
        if following and (graph.in_degree(node) == 0 or following > graph.in_degree(node)):
            found[node] = min(found[after] for after in graph.successors(node)) - 1
    return _without_gaps(found)


def _without_circles(nodes: Sequence[str], links: Iterable[Ends]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((source, target) for source, target in links if source != target)
    order = {node: number for number, node in enumerate(nodes)}
    circle: Mapping[str, int] = {
        node: number
        for number, part in enumerate(nx.strongly_connected_components(graph))
        if len(part) > 1
        for node in part
    }
    against = [
        (source, target)
        for source, target in graph.edges
        if source in circle
        and circle[source] == circle.get(target)
        and order[source] > order[target]
    ]
    graph.remove_edges_from(against)
    return graph


def _without_gaps(found: Mapping[str, int]) -> dict[str, int]:
    numbers = {old: new for new, old in enumerate(sorted(set(found.values())))}
    return {node: numbers[column] for node, column in found.items()}
