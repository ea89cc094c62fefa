"""Which producer: each rule of the design, by the smallest graph that needs it."""

from __future__ import annotations

import pytest

from memtrace_collector.graph.ancestry import ancestry
from memtrace_collector.graph.facts import Decision, Edge, Operation
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Resolution, Use, resolve
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.memtrace_collector.graph.build import facts, key, operation

MEM = "mem:s:1@a"


def resolved(ref: str, user: Operation, *others: Operation) -> Resolution:
    lookups = Lookups(InMemoryFactStore.of(facts(user, *others)))
    use = Use(user, ref)
    return resolve(lookups, [use])[use.key]


def targets(result: Resolution) -> set[object]:
    return {item.operation.key for item in result.occurrences}


def test_the_only_producer_is_the_producer_whatever_the_clocks_say() -> None:
    late = operation("w/create", "create", 1000, outputs=[MEM])
    result = resolved(MEM, operation("r/use", "assemble", 1, inputs=[MEM]), late)
    assert targets(result) == {late.key} and result.status == "complete"


def test_from_names_the_producer_that_is_meant() -> None:
    makers = [operation(f"w{n}/x", "extract", n, outputs=["fact:f@1"]) for n in (1, 2, 3)]
    user = operation("r/use", "create", 9, inputs=["fact:f@1"], sources={"fact:f@1": key("w2/x")})
    assert targets(resolved("fact:f@1", user, *makers)) == {makers[1].key}


def test_of_producers_in_the_same_trace_the_nearest_in_the_span_tree_wins() -> None:
    near = operation("t/near", "extract", 1, outputs=["fact:f@1"], parent="add1")
    far = operation("t/far", "extract", 2, outputs=["fact:f@1"], parent="add2")
    user = operation("t/use", "create", 3, inputs=["fact:f@1"], parent="add1")
    parents = [operation(f"t/add{n}", "add", 0, took=9, composite=True) for n in (1, 2)]
    assert targets(resolved("fact:f@1", user, near, far, *parents)) == {near.key}


def test_of_nested_producers_only_the_innermost_counts() -> None:
    outer = operation("w/add", "add", 1, took=5, outputs=[MEM], composite=True)
    inner = operation("w/create", "create", 2, outputs=[MEM], parent="add")
    result = resolved(MEM, operation("r/use", "assemble", 9, inputs=[MEM]), outer, inner)
    assert targets(result) == {inner.key} and result.status == "complete"


def test_a_text_that_returned_belongs_to_the_write_that_made_it_current() -> None:
    other = "mem:s:1@b"
    writes = [
        operation("w1/w", "create", 1, outputs=[MEM]),
        operation("w2/w", "update", 2, outputs=[other], supersedes=[MEM]),
        operation("w3/w", "update", 3, outputs=[MEM], supersedes=[other]),
    ]
    between = operation("r1/use", "retrieve", 1.5, delivered=[MEM])
    after = operation("r2/use", "retrieve", 9, delivered=[MEM])
    assert targets(resolved(MEM, between, *writes)) == {writes[0].key}
    assert targets(resolved(MEM, after, *writes)) == {writes[2].key}


def test_without_another_rule_the_latest_that_had_started_wins() -> None:
    makers = [operation(f"w{n}/x", "extract", n, outputs=["fact:f@1"]) for n in (1, 5, 20)]
    user = operation("r/use", "create", 9, inputs=["fact:f@1"])
    assert targets(resolved("fact:f@1", user, *makers)) == {makers[1].key}


def test_producers_that_cannot_be_told_apart_all_stay_and_are_ambiguous() -> None:
    makers = [operation(f"w{n}/x", "extract", 1, outputs=["fact:f@1"]) for n in (1, 2)]
    result = resolved("fact:f@1", operation("r/u", "create", 9, inputs=["fact:f@1"]), *makers)
    assert targets(result) == {item.key for item in makers} and result.status == "ambiguous"


def test_a_delivery_earlier_in_the_trace_comes_before_the_producer() -> None:
    writer = operation("w/create", "create", 1, outputs=[MEM])
    first = operation("r/one", "retrieve", 5, delivered=[MEM])
    latest = operation("r/two", "rerank", 6, delivered=[MEM])
    user = operation("r/use", "assemble", 7, inputs=[MEM])
    assert targets(resolved(MEM, user, writer, first, latest)) == {latest.key}
    assert targets(resolved(MEM, latest, writer, first, user)) == {first.key}
    assert targets(resolved(MEM, first, writer, latest, user)) == {writer.key}


def test_parallel_searches_do_not_deliver_to_each_other() -> None:
    writer = operation("w/create", "create", 1, outputs=[MEM])
    one = operation("r/one", "retrieve", 5, took=2, delivered=[MEM])
    two = operation("r/two", "retrieve", 6, took=2, delivered=[MEM])
    assert targets(resolved(MEM, one, writer, two)) == {writer.key}
    assert targets(resolved(MEM, two, writer, one)) == {writer.key}


def test_a_deliverer_named_in_from_counts_across_traces() -> None:
    writer = operation("w/create", "create", 1, outputs=[MEM])
    search = operation("s/search", "retrieve", 5, delivered=[MEM])
    user = operation("a/answer", "answer", 6, inputs=[MEM], sources={MEM: key("s/search")})
    result = resolved(MEM, user, writer, search)
    assert targets(result) == {search.key} and result.via == "delivered"


def test_the_own_graph_comes_before_the_graphs_that_are_read() -> None:
    shared = operation("s/ingest", "ingest", 1, outputs=["doc:d/1@a"], graph_id="corpus")
    user = operation("r/search", "retrieve", 5, delivered=["doc:d/1@a"], reads=["corpus"])
    blind = operation("r/search", "retrieve", 5, delivered=["doc:d/1@a"])
    assert targets(resolved("doc:d/1@a", user, shared)) == {shared.key}
    assert resolved("doc:d/1@a", blind, shared).via == "source"


def test_a_version_nobody_could_see_joins_what_was_current_inexactly() -> None:
    writes = [
        operation("w1/w", "create", 1, outputs=["mem:s:1@a"]),
        operation("w2/w", "update", 5, outputs=["mem:s:1@b"], supersedes=["mem:s:1@a"]),
    ]
    read = operation("r/r", "retrieve", 3, delivered=["mem:s:1@?"])
    result = resolved("mem:s:1@?", read, *writes)
    assert targets(result) == {writes[0].key} and result.status == "inexact"


def test_a_deleted_record_is_joined_by_its_last_visible_version() -> None:
    written = operation("w1/w", "create", 1, outputs=["mem:s:1@a"])
    gone = operation("w2/w", "delete", 2, outputs=["mem:s:1@deleted"])
    read = operation("r/r", "retrieve", 3, delivered=["mem:s:1@z"], digest_key="other")
    assert targets(resolved("mem:s:1@z", read, written, gone)) == {written.key}


def test_questions_prompts_and_messages_are_sources_and_the_rest_is_missing() -> None:
    user = operation("r/u", "answer", 1)
    for ref in ("query:q@1", "prompt:p@1", "msg:m@1", "doc:d@1"):
        assert resolved(ref, user).via == "source"
    result = resolved("ctx:c@1", user)
    assert result.via == "missing" and result.status == "incomplete"


def ancestors(answer: Operation, *others: Operation) -> set[object]:
    lookups = Lookups(InMemoryFactStore.of(facts(answer, *others)))
    return set(ancestry(lookups, answer).operations) - {answer.key}


def test_only_the_input_that_made_the_output_is_an_ancestor() -> None:
    said = [operation(f"m{n}/i", "ingest", n, outputs=[f"msg:{n}@1"]) for n in (1, 2)]
    batch = operation(
        "x/x",
        "extract",
        3,
        inputs=["msg:1@1", "msg:2@1"],
        outputs=["fact:1@1", "fact:2@1"],
        edges=[
            Edge("msg:1@1", "fact:1@1", "extracted_from"),
            Edge("msg:2@1", "fact:2@1", "extracted_from"),
        ],
    )
    answer = operation("a/a", "answer", 4, inputs=["fact:2@1"], outputs=["ans:a@1"])
    assert ancestors(answer, batch, *said) == {batch.key, said[1].key}


def test_an_association_is_no_ancestry() -> None:
    said = operation("m1/i", "ingest", 1, outputs=["msg:1@1"])
    near = operation("m2/i", "create", 2, outputs=["mem:s:9@1"])
    write = operation(
        "x/x",
        "create",
        3,
        inputs=["msg:1@1", "mem:s:9@1"],
        outputs=[MEM],
        edges=[Edge("msg:1@1", MEM, "derived_from"), Edge("mem:s:9@1", MEM, "related_to")],
    )
    answer = operation("a/a", "answer", 4, inputs=[MEM], outputs=["ans:a@1"])
    assert ancestors(answer, said, near, write) == {write.key, said.key}


def test_what_was_shown_or_superseded_is_no_ancestor() -> None:
    old = operation("o/o", "create", 1, outputs=["mem:s:1@old"])
    write = operation(
        "x/x", "update", 3, shown=["mem:s:1@old"], outputs=[MEM], supersedes=["mem:s:1@old"]
    )
    answer = operation("a/a", "answer", 4, inputs=[MEM], outputs=["ans:a@1"])
    assert ancestors(answer, old, write) == {write.key}


def test_a_written_record_goes_back_to_the_decision_and_its_own_fact_only() -> None:
    made = [operation(f"t/x{n}", "extract", n, outputs=[f"fact:{n}@1"]) for n in (1, 2)]
    decide = operation(
        "t/d",
        "decide",
        3,
        inputs=["fact:1@1", "fact:2@1"],
        decisions=[Decision("fact:1@1", "ADD"), Decision("fact:2@1", "NOOP")],
    )
    write = operation("t/w", "create", 4, inputs=["fact:1@1"], outputs=[MEM])
    answer = operation("a/a", "answer", 9, inputs=[MEM], outputs=["ans:a@1"])
    assert ancestors(answer, decide, write, *made) == {write.key, decide.key, made[0].key}


@pytest.mark.fault("F26")
def test_a_walk_that_hits_its_limit_says_that_the_lineage_is_incomplete() -> None:
    chain = [
        operation(f"c{n}/c", "assemble", n, inputs=[f"ctx:{n}@1"], outputs=[f"ctx:{n + 1}@1"])
        for n in range(1, 30)
    ]
    store = InMemoryFactStore.of(facts(*chain))
    found = ancestry(Lookups(store), chain[-1], max_operations=10)
    assert found.truncated and found.status == "incomplete" and len(found.operations) < 15


@pytest.mark.fault("F26")
def test_a_circle_of_references_ends() -> None:
    one = operation("c1/c", "assemble", 1, inputs=["ctx:2@1"], outputs=["ctx:1@1"])
    two = operation("c2/c", "assemble", 2, inputs=["ctx:1@1"], outputs=["ctx:2@1"])
    assert ancestors(one, two) == {two.key}


@pytest.mark.fault("F26")
def test_a_shortened_lineage_is_incomplete_but_shortened_candidates_are_not() -> None:
    for part, status in (("inputs", "incomplete"), ("dropped", "complete")):
        answer = operation("a/a", "answer", 1, outputs=["ans:a@1"], truncated={part: 3})
        store = InMemoryFactStore.of(facts(answer))
        assert ancestry(Lookups(store), answer).status == status
