"""Columns and places of a drawing: nothing overlaps, links lead to the right, always the same."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time

import pytest

from memtrace_collector.api.explorer.layers import Ends, columns
from memtrace_collector.api.explorer.placing import COLUMN_GAP, Box, Placed, Size, placed

SIZE = Size(100, 30)


def of(links: list[Ends], *more: str) -> Placed:
    nodes = dict.fromkeys([*itertools.chain.from_iterable(links), *more])
    return placed(dict.fromkeys(nodes, SIZE), links)


def tangle(nodes: int, links: int, seed: int = 3) -> tuple[list[str], list[Ends]]:
    """Links from earlier to later nodes, a few of them against time, and one hub."""
    rng = random.Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    found = []
    for _ in range(links):
        a, b = sorted(rng.sample(range(nodes), 2))
        found.append((names[b], names[a]) if rng.random() < 0.02 else (names[a], names[b]))
    found += [(names[0], name) for name in names[1 : nodes // 4]]
    return names, found


def overlapping(boxes: dict[str, Box]) -> list[tuple[str, str]]:
    ordered = sorted(boxes.items(), key=lambda item: item[1].y)
    found = []
    for (one, a), (other, b) in itertools.combinations(ordered, 2):
        beside = a.x + a.width <= b.x or b.x + b.width <= a.x
        apart = a.y + a.height <= b.y or b.y + b.height <= a.y
        if not (beside or apart):
            found.append((one, other))
    return found


def test_a_chain_is_one_straight_row() -> None:
    found = of([("msg", "extract"), ("extract", "fact"), ("fact", "create")])
    boxes = [found.boxes[name] for name in ("msg", "extract", "fact", "create")]
    assert [box.x for box in boxes] == [n * (SIZE.width + COLUMN_GAP) for n in range(4)]
    assert {box.y for box in boxes} == {0}
    assert (found.width, found.height) == (4 * 100 + 3 * COLUMN_GAP, 30)


def test_what_nothing_leads_to_stands_beside_its_first_use() -> None:
    links = [("a", "b"), ("b", "c"), ("c", "answer"), ("query", "answer")]
    assert columns(["a", "b", "c", "query", "answer"], links)["query"] == 2


def test_a_link_against_time_leads_to_the_right_unless_it_closes_a_circle() -> None:
    skewed = columns(["reader", "writer"], [("writer", "reader")])
    assert skewed == {"writer": 0, "reader": 1}
    circle = columns(["v1", "op", "v2"], [("v1", "op"), ("op", "v2"), ("v2", "v1")])
    assert circle == {"v1": 0, "op": 1, "v2": 2}


def test_a_hub_stands_in_the_middle_of_what_it_leads_to() -> None:
    leaves = [f"leaf{n}" for n in range(501)]
    found = of([("hub", leaf) for leaf in leaves])
    hub = found.boxes["hub"]
    assert abs(hub.y + hub.height / 2 - found.height / 2) <= 1
    assert not overlapping(dict(found.boxes))


def test_parallel_chains_do_not_cross() -> None:
    chains = [[f"{step}{n}" for step in "abcd"] for n in range(20)]
    links = [pair for chain in chains for pair in itertools.pairwise(chain)]
    random.Random(1).shuffle(links)
    boxes = of(links).boxes
    assert all(len({boxes[node].y for node in chain}) == 1 for chain in chains)


@pytest.mark.parametrize("seed", range(4))
def test_in_a_tangle_nothing_overlaps_and_links_lead_to_the_right(seed: int) -> None:
    names, links = tangle(250, 500, seed)
    sizes = {name: Size(176, 46) if n % 2 else Size(196, 30) for n, name in enumerate(names)}
    found = placed(sizes, links)
    assert set(found.boxes) == set(names)
    assert not overlapping(dict(found.boxes))
    column = columns(names, links)
    leading = [pair for pair in links if column[pair[0]] < column[pair[1]]]
    assert all(found.boxes[a].x + found.boxes[a].width < found.boxes[b].x for a, b in leading)
    assert len(leading) > 0.9 * len(links)
    assert min(box.x for box in found.boxes.values()) >= 0 == min(b.y for b in found.boxes.values())


def test_the_same_drawing_comes_out_whatever_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "from tests.memtrace_collector.api.explorer.test_placing import tangle\n"
        "from memtrace_collector.api.explorer.placing import placed, Size\n"
        "names, links = tangle(120, 240)\n"
        "print(sorted(placed(dict.fromkeys(names, Size(10, 5)), links).boxes.items()))"
    )
    drawn = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(drawn) == 1 and len(drawn.pop()) > 1_000


def test_nothing_and_a_single_node_can_be_drawn() -> None:
    assert of([]) == Placed({}, 0, 0)
    assert of([("alone", "alone")]).boxes == {"alone": Box(0, 0, 100, 30)}


def test_two_thousand_nodes_take_a_second_at_most() -> None:
    names, links = tangle(2_000, 3_000)
    started = time.process_time()
    placed(dict.fromkeys(names, SIZE), links)
    assert time.process_time() - started < 1.0
