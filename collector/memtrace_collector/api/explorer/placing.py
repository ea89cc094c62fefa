"""Where each node of a drawing stands within its column. Pure, deterministic.

The order within a column follows the mean place of the neighbours, by turns of those to the left
and to the right (barycentre sweeps); then each node moves as close to the middle of its
neighbours as the order and the gaps allow, which isotonic regression finds in linear time.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import networkx as nx

from memtrace_collector.api.explorer.layers import Ends, columns

COLUMN_GAP = 72
ROW_GAP = 14
_ORDERING_SWEEPS = 12
_ALIGNING_SWEEPS = 10


class Size(NamedTuple):
    """In pixels of the drawing at its natural scale."""

    width: int
    height: int


class Box(NamedTuple):
    """Left upper corner and size, in pixels."""

    x: int
    y: int
    width: int
    height: int


class Placed(NamedTuple):
    boxes: Mapping[str, Box]
    width: int
    height: int


def placed(sizes: Mapping[str, Size], links: Iterable[Ends]) -> Placed:
    """Boxes that do not overlap, every column left of the next.

    Args:
        sizes: of the nodes, in the order of time.
        links: source and target, both among the nodes.
    """
    pairs = list(dict.fromkeys((a, b) for a, b in links if a != b))
    column_of = columns(list(sizes), pairs)
    rows = _in_order(_by_column(list(sizes), column_of, pairs), pairs, column_of)
    middles = _aligned(rows, sizes, _neighbours(pairs))
    top = min((middles[node] - sizes[node].height / 2 for node in sizes), default=0.0)
    boxes: dict[str, Box] = {}
    x = 0
    for row in rows:
        width = max(sizes[node].width for node in row)
        for node in row:
            size = sizes[node]
            y = round(middles[node] - size.height / 2 - top)
            boxes[node] = Box(x + (width - size.width) // 2, y, *size)
        x += width + COLUMN_GAP
    height = max((box.y + box.height for box in boxes.values()), default=0)
    return Placed({node: boxes[node] for node in sizes}, max(0, x - COLUMN_GAP), height)


def _by_column(
    nodes: Sequence[str], column_of: Mapping[str, int], links: Iterable[Ends]
) -> list[list[str]]:
    """The nodes of each column, what hangs together side by side, oldest first."""
    graph = nx.Graph(links)
    graph.add_nodes_from(nodes)
    order = {node: number for number, node in enumerate(nodes)}
    part_of: dict[str, int] = {}
    for part in nx.connected_components(graph):
        part_of.update(dict.fromkeys(part, min(order[node] for node in part)))
    rows: list[list[str]] = [[] for _ in range(1 + max(column_of.values(), default=-1))]
    for node in sorted(nodes, key=lambda node: (part_of[node], order[node])):
        rows[column_of[node]].append(node)
    return rows


def _in_order(
    rows: list[list[str]], links: Sequence[Ends], column_of: Mapping[str, int]
) -> list[list[str]]:
    before: dict[str, list[str]] = defaultdict(list)
    after: dict[str, list[str]] = defaultdict(list)
    for source, target in links:
        left, right = sorted((source, target), key=column_of.__getitem__)
        before[right].append(left)
        after[left].append(right)
    place: dict[str, float] = {}
    for row in rows:
        _number(row, place)
    for sweep in range(_ORDERING_SWEEPS):
        to_the_right = sweep % 2 == 0
        near = before if to_the_right else after
        for row in rows if to_the_right else reversed(rows):
            means = {node: _mean(place, near[node], place[node]) for node in row}
            row.sort(key=means.__getitem__)
            _number(row, place)
    return rows


def _number(row: Sequence[str], place: dict[str, float]) -> None:
    """Places from 0 to 1, so that long and short columns compare."""
    for number, node in enumerate(row):
        place[node] = (number + 0.5) / len(row)


def _aligned(
    rows: Sequence[Sequence[str]], sizes: Mapping[str, Size], near: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """The middle of each node, from the top."""
    middles: dict[str, float] = {}
    for row in rows:
        middles.update(zip(row, _spread([0.0] * len(row), _gaps(row, sizes))))
    for sweep in range(_ALIGNING_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_mean(middles, near[node], middles[node]) for node in row]
            middles.update(zip(row, _spread(wanted, _gaps(row, sizes))))
    return middles


def _gaps(row: Sequence[str], sizes: Mapping[str, Size]) -> list[float]:
    """Least distances between the middles of neighbours in a column."""
    heights = [sizes[node].height for node in row]
    return [(upper + lower) / 2 + ROW_GAP for upper, lower in itertools.pairwise(heights)]


def _spread(wanted: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """The places closest to the wanted ones (least squares) that keep the order and the gaps."""
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    blocks: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets):
        total, count = place - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            more, members = blocks.pop()
            total, count = total + more, count + members
        blocks.append((total, count))
    found = [total / count for total, count in blocks for _ in range(count)]
    return [place + offset for place, offset in zip(found, offsets)]


def _neighbours(links: Iterable[Ends]) -> dict[str, list[str]]:
    near: dict[str, list[str]] = defaultdict(list)
    for source, target in links:
        near[source].append(target)
        near[target].append(source)
    return near


def _mean(places: Mapping[str, float], nodes: Sequence[str], otherwise: float) -> float:
    return sum(places[node] for node in nodes) / len(nodes) if nodes else otherwise
