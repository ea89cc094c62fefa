"""A hostile name is data in every store and every walk."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from memtrace_collector.graph.ancestry import ancestry
from memtrace_collector.graph.closure import closure
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions import answers
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import FactStore
from tests.contract.hostile import HOSTILE
from tests.contract.test_fact_stores import MAKERS
from tests.memtrace_collector.graph.build import facts, operation


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest) -> Iterator[FactStore]:
    store = MAKERS[request.param](request)
    yield store
    store.close()


@pytest.mark.fault("F31")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_is_a_name_like_any_other(store: FactStore, text: str) -> None:
    """As graph, record, version, process, service, response and conversation."""
    ref, graph_id = f"mem:{text}@{text}", f"user:{text}"
    made = operation(
        "w/w", "create", 1, outputs=[ref], graph_id=graph_id, seq=(text, 1), service=text
    )
    answer = operation(
        "a/a",
        "answer",
        3,
        inputs=[ref],
        outputs=["ans:a@1"],
        graph_id="user:reader",
        reads=[graph_id],
        seq=(text, 3),
        response_id=text,
        conversation_id=text,
    )
    plain = operation("p/p", "create", 1, outputs=["mem:s:1@a"], graph_id="user:plain")
    at = LogPosition(1, 1)
    store.apply([(at, item) for item in facts(plain, made, answer)], at)
    found = ancestry(Lookups(store), answer)
    assert set(found.operations) == {made.key, answer.key} and found.status == "complete"
    assert [loss.first for loss in closure(store, {text}).losses] == [2]
    assert store.response_operations(text) == store.conversation_operations(text) == [answer]
    lookups = Lookups(store)
    record = ref.rpartition("@")[0]
    assert [write.operation for write in lookups.history(graph_id, record)] == [made]
    assert lookups.record_users("user:reader", [record]) == {record: [answer]}
    shown = answers.ancestry(store, str(answer.key)).whole()
    assert json.loads(json.dumps(shown))["operations"][0]["graph_id"] == graph_id
    assert {item.graph_id for item in store.graphs()} == {graph_id, "user:reader", "user:plain"}
    assert store.graph_hash(graph_id) != store.graph_hash("user:plain")
