"""The watched invariants: each is found, and what only looks like it is not."""

from __future__ import annotations

from memtrace_collector.graph import invariants
from memtrace_collector.graph.facts import Decision, Operation
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.readings import met_by
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.memtrace_collector.graph.build import GRAPH, facts, operation

A, B = "mem:s:1@a", "mem:s:1@b"
CREATED = operation("w1/w", "create", 1, outputs=[A])
UPDATED = operation("w2/w", "update", 10, outputs=[B], supersedes=[A])
DELETED = operation("w3/w", "delete", 20, outputs=["mem:s:1@deleted"], supersedes=[B])


def found(*operations: Operation) -> list[str]:
    return [item.kind for item in invariants.check(InMemoryFactStore.of(facts(*operations)), GRAPH)]


def read(ref: str, at: float = 30, path: str = "r/r", **fields: object) -> Operation:
    return operation(path, "retrieve", at, delivered=[ref], **fields)


def test_a_superseded_version_delivered_is_stale() -> None:
    assert found(CREATED, UPDATED, read(A)) == ["stale"]
    assert found(CREATED, UPDATED, read(B)) == []
    assert found(CREATED, UPDATED, read(A, at=5)) == []


def test_a_later_stage_of_the_same_read_is_not_counted_again() -> None:
    assert found(CREATED, UPDATED, read(A), read(A, at=31, path="r/rerank")) == ["stale"]


def test_a_write_under_way_or_within_clock_tolerance_makes_nothing_stale() -> None:
    slow = operation("w2/w", "update", 10, took=40, outputs=[B], supersedes=[A])
    assert found(CREATED, slow, read(A)) == []
    assert found(CREATED, UPDATED, read(A, at=11)) == []


def test_two_digest_keys_are_never_compared() -> None:
    assert found(CREATED, UPDATED, read(A, digest_key="other")) == []


def test_a_blind_version_proves_nothing() -> None:
    blind = operation("w2/w", "update", 10, outputs=["mem:s:1@?"], supersedes=["mem:s:1@?"])
    assert found(CREATED, blind, read(A)) == []
    assert found(CREATED, UPDATED, read("mem:s:1@?")) == []


def test_a_version_nobody_wrote_is_not_called_stale() -> None:
    assert found(CREATED, UPDATED, read("mem:s:1@unseen")) == []


def test_the_same_text_without_its_state_is_not_stale() -> None:
    invalidated = operation("w2/w", "update", 10, outputs=["mem:s:1@a~123456"], supersedes=[A])
    assert found(CREATED, invalidated, read(A)) == []


def test_a_deleted_record_delivered_is_a_zombie() -> None:
    assert found(CREATED, UPDATED, DELETED, read(B)) == ["zombie"]
    assert found(CREATED, UPDATED, DELETED, read(B, at=15)) == []


def test_another_owners_record_delivered_is_foreign_unless_the_read_names_the_graph() -> None:
    theirs = operation("w1/w", "create", 1, outputs=[A], graph_id="user:eve")
    assert found(read(A), theirs) == ["foreign"]
    assert found(read(A, reads=["user:eve"]), theirs) == []


def test_equal_texts_of_two_owners_are_not_foreign() -> None:
    chunk = f"doc:{'ab' * 16}@{'ab' * 6}"
    theirs = operation("w1/w", "ingest", 1, outputs=[chunk], graph_id="user:eve")
    assert found(read(chunk), theirs) == []


def test_a_decision_that_nothing_carried_out_is_a_lost_write() -> None:
    parent = operation("t/add", "add", 1, took=9, composite=True)

    def decide(action: str, status: str | None = None) -> Operation:
        decision = Decision("fact:1@1", action, None, status)
        fields = {"inputs": ["fact:1@1"], "decisions": [decision], "parent": "add"}
        return operation("t/d", "decide", 3, **fields)

    done = operation("t/w", "create", 4, inputs=["fact:1@1"], outputs=[A], parent="add")
    failed = operation(
        "t/w", "create", 4, inputs=["fact:1@1"], outputs=[A], parent="add", error_type="Timeout"
    )
    assert found(parent, decide("ADD")) == ["lost_write"]
    assert found(parent, decide("ADD"), failed) == ["lost_write"]
    assert found(parent, decide("ADD"), done) == []
    assert found(parent, decide("NOOP")) == []
    assert found(parent, decide("ADD", "skipped")) == []


def test_a_gap_in_the_sequence_explains_a_missing_write() -> None:
    decide = operation(
        "t/d", "decide", 3, decisions=[Decision("fact:1@1", "ADD")], seq=("p", 1), took=5
    )
    assert found(decide, operation("u/i", "ingest", 9, outputs=["msg:1@1"], seq=("p", 3))) == []
    assert found(decide, operation("u/i", "ingest", 9, outputs=["msg:1@1"], seq=("p", 2))) == [
        "lost_write"
    ]


def test_a_value_that_comes_back_is_flapping() -> None:
    back = operation("w3/w", "update", 20, outputs=[A], supersedes=[B])
    assert found(CREATED, UPDATED, back) == ["flapping"]
    assert found(CREATED, UPDATED) == []


def test_an_empty_search_is_found_but_not_the_look_for_similar_ones_inside_an_add() -> None:
    empty = operation("r/s", "retrieve", 5, inputs=["query:q@1"])
    inside = operation("t/s", "retrieve", 5, parent="add")
    assert found(empty) == ["empty_retrieval"]
    assert found(operation("t/add", "add", 1, took=9, composite=True), inside) == []


def about(record: str, *operations: Operation, graph_id: str = GRAPH) -> list[str]:
    lookups = Lookups(InMemoryFactStore.of(facts(*operations)))
    met = met_by(lookups, graph_id, record)
    return [item.kind for item in invariants.of_record(lookups, graph_id, record, met)]


def test_of_one_record_the_same_is_found_and_nothing_of_others() -> None:
    back = operation("w4/w", "update", 40, outputs=[A], supersedes=[B])
    other = operation("w5/w", "create", 50, outputs=["mem:s:2@a"])
    everything = (CREATED, UPDATED, read(A), back, other, read("mem:s:2@a", 60, "r2/r"))
    assert found(*everything) == about("mem:s:1", *everything) == ["stale", "flapping"]
    assert about("mem:s:2", *everything) == []
    assert about("mem:s:1", CREATED, UPDATED, DELETED, read(B)) == ["zombie"]


def test_a_record_that_a_stranger_was_given_is_foreign_to_the_stranger() -> None:
    stranger = read(A, graph_id="user:bo")
    assert about("mem:s:1", CREATED, stranger) == ["foreign"]
    assert about("mem:s:1", CREATED, read(A, graph_id="user:bo", reads=(GRAPH,))) == []


def test_a_decision_about_a_record_that_nothing_carried_out_is_told_with_the_record() -> None:
    decider = operation(
        "w6/d", "decide", 12, parent="add", inputs=["fact:f@1"],
        decisions=[Decision("fact:f@1", "UPDATE", A), Decision("fact:g@1", "ADD")],
    )  # fmt: skip
    around = operation("w6/add", "add", 12, took=5, composite=True)
    assert about("mem:s:1", CREATED, around, decider) == ["lost_write"]
