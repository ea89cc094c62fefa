"""The walk: its short cuts change no answer, and each level asks each graph once."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.graph import deciding, lookups, resolution
from memtrace_collector.graph.ancestry import ancestry
from memtrace_collector.graph.facts import Decision, Edge, Operation, OperationKey
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.references import ancestry_inputs, writes_record
from memtrace_collector.graph.resolution import Use
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.in_memory import InMemoryFactStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore
from tests.memtrace_collector.graph.build import facts, key, operation

REFS = [
    f"{kind}:{n}@{version}"
    for kind in ("mem", "fact", "msg", "query", "ctx")
    for n in range(2)
    for version in ("1", "2", "?")
]
STEPS = ("ingest", "extract", "decide", "create", "update", "retrieve", "assemble", "answer")
_Parents = dict[OperationKey, set[OperationKey]]


def any_operations(rng: random.Random) -> list[Operation]:
    """A small heap of operations that name each other in every way there is."""
    found: list[Operation] = []
    paths: list[str] = []
    for number in range(rng.randrange(2, 16)):
        path = f"t{rng.randrange(5)}/s{number}"
        some = [rng.choices(REFS, k=rng.randrange(3)) for _ in range(4)]
        fields: dict[str, Any] = {
            "inputs": some[0],
            "outputs": some[1],
            "delivered": some[2] if rng.random() < 0.4 else [],
            "supersedes": some[3] if rng.random() < 0.2 else [],
            "graph_id": rng.choice("ggh"),
            "reads": ["h"] if rng.random() < 0.4 else [],
            "took": rng.choice([0.001, 2, 5]),
            "composite": rng.random() < 0.2,
            "truncated": {"inputs": 1} if rng.random() < 0.2 else {},
        }
        if paths and rng.random() < 0.4:
            fields["sources"] = {r: key(rng.choice(paths)) for r in rng.sample(REFS, 4)}
        if paths and rng.random() < 0.4:
            fields["parent"] = rng.choice(paths).partition("/")[2]
        if rng.random() < 0.3:
            actions = rng.choices(["ADD", "UPDATE", "NOOP"], k=2)
            fields["decisions"] = [
                Decision(rng.choice([None, *REFS]), each, rng.choice([None, *REFS]))
                for each in actions
            ]
        if some[0] and some[1] and rng.random() < 0.3:
            relation = rng.choice(["derived_from", "related_to"])
            fields["edges"] = [Edge(rng.choice(some[0]), rng.choice(some[1]), relation)]
        found.append(operation(path, rng.choice(STEPS), rng.randrange(12), **fields))
        paths.append(path)
    return found


def step_by_step(reader: GraphReader, answer: Operation) -> tuple[_Parents, set[str]]:
    """An ancestry with one use at a time and nothing remembered but what was seen."""
    parents: _Parents = {}
    missing: set[str] = set()
    seen: set[tuple[OperationKey, str]] = set()
    pending = [(answer, ref) for ref in ancestry_inputs(answer, None)]
    while pending:
        user, ref = pending.pop(0)
        if (user.key, ref) in seen:
            continue
        seen.add((user.key, ref))
        (result,) = resolution.resolve(Lookups(reader), [Use(user, ref)]).values()
        missing |= {ref} if result.via == resolution.MISSING else set()
        for made, maker in result.occurrences:
            parents.setdefault(user.key, set()).add(maker.key)
            refs = ancestry_inputs(maker, made)
            if result.via == resolution.DELIVERED:
                refs = (*refs, made)
            pending += [(maker, each) for each in refs]
            if writes_record(maker):
                for choice in deciding.choices(maker, Lookups(reader).tree(maker.trace_id)):
                    parents.setdefault(maker.key, set()).add(choice.operation.key)
                    pending += [(choice.operation, each) for each in choice.refs]
    return parents, missing


@pytest.mark.parametrize("whole", [False, True], ids=["asked for", "read whole"])
def test_a_walk_gives_what_going_step_by_step_gives(
    monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setattr(lookups, "_WORTH_READING", 1e9 if whole else 0)
    walked = 0
    for seed in range(150):
        operations = any_operations(random.Random(seed))
        store = InMemoryFactStore.of(facts(*operations))
        for answer in operations:
            found = ancestry(Lookups(store), answer)
            parents = {each: set(items) for each, items in found.parents.items()}
            assert (parents, set(found.missing)) == step_by_step(store, answer), seed
            walked += len(parents) > 1
    assert walked > 150, "the heaps are too thin to show anything"


class Counting:
    """Passes reads on and counts them by name and graph."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader
        self.asked: Counter[tuple[str, str]] = Counter()

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._reader, name)

        def counted(first: str, *rest: Any) -> Any:
            graph_id = first if isinstance(first, str) else ""
            self.asked[name, graph_id] += 1
            return read(first, *rest)

        return counted


def shared_and_own(levels: int, width: int) -> list[Operation]:
    """Every level takes ``width`` versions of a graph of its own and as many that it reads."""
    made = []
    for level in range(levels):
        for n in range(width):
            for graph, other in (("own", "shared"), ("shared", "own")):
                below = [f"mem:{g}:{level - 1}/{n}@1" for g in (graph, other) if level]
                made.append(
                    operation(
                        f"{graph[0]}{level}.{n}/x",
                        "update",
                        level,
                        inputs=below,
                        outputs=[f"mem:{graph}:{level}/{n}@1"],
                        graph_id=graph,
                        reads=[other],
                    )
                )
    last = [f"mem:{g}:{levels - 1}/{n}@1" for g in ("own", "shared") for n in range(width)]
    answer = operation(
        "a/a", "answer", levels, inputs=last, outputs=["ans:a@1"], graph_id="own", reads=["shared"]
    )
    return [*made, answer]


def test_a_walk_along_reads_asks_each_graph_once_a_level(tmp_path: Path) -> None:
    levels, width = 12, 7
    operations = shared_and_own(levels, width)
    store = SqliteFactStore(tmp_path / "facts.db")
    at = LogPosition(1, 1)
    store.apply([(at, item) for item in facts(*operations)], at)
    counting = Counting(store)
    found = ancestry(Lookups(counting), operations[-1])  # type: ignore[arg-type]  # a stand-in
    assert (len(found.operations), found.status) == (2 * levels * width + 1, "complete")
    assert {name for name, _ in counting.asked} <= {
        "producers",
        "record_writers",
        "trace_siblings",
        "size",
    }
    for graph_id in ("own", "shared"):
        assert counting.asked["producers", graph_id] <= 2 * (levels + 1)
    store.close()


def test_no_statement_of_a_walk_along_reads_names_two_graphs(tmp_path: Path) -> None:
    """Graphs may lie on several machines."""
    operations = shared_and_own(3, 2)
    store = SqliteFactStore(tmp_path / "facts.db")
    at = LogPosition(1, 1)
    store.apply([(at, item) for item in facts(*operations)], at)
    statements: list[str] = []
    store._connections.reader().set_trace_callback(statements.append)
    assert len(ancestry(Lookups(store), operations[-1]).operations) == 13
    named = [set(re.findall(r"\bgraph_id = '(\w+)'", statement)) for statement in statements]
    assert len(set().union(*named)) == 2, statements
    assert max(map(len, named)) == 1
    store.close()
