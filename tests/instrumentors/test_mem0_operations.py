"""What both generations of mem0 have in common, against the real library of this environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memtrace_otel
from memtrace_otel import testing
from tests.instrumentors import mem0_kit
from tests.instrumentors.mem0_kit import (
    GRAPH,
    KINDS,
    MAJOR,
    World,
    children,
    error_seen,
    lineage,
    mem,
    msg,
    world,
)


@pytest.fixture(params=KINDS)
def w(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with world(tmp_path, request.param) as made:
        yield made


def query(text: str) -> str:
    return msg(text).replace("msg:", "query:", 1)


def test_raw_messages_become_records_without_a_model(w: World) -> None:
    messages = [
        {"role": "user", "content": "I have a cat.", "message_id": "m1"},
        {"role": "assistant", "content": "What is its name?"},
        {"role": "user", "content": "I have a cat.", "message_id": "m3"},
    ]
    results = w.add(messages, infer=False)
    texts = [message["content"] for message in messages]
    sources = [msg(texts[0], "m1"), msg(texts[1]), msg(texts[2], "m3")]
    creates = [lineage(span) for span in children(w.spans, "add")[3:]]
    assert creates == [
        {"inputs": [source], "outputs": [mem(result["id"], text)]}
        for source, result, text in zip(sources, results, texts)
    ]
    assert w.stored() == {result["id"]: text for result, text in zip(results, texts)}
    assert w.stub.chat_requests == []


def test_search_delivers_versions_with_scores_in_rank_order(w: World) -> None:
    w.store("Lives in Lisbon", "Owns a grey cat")
    results = w.search("Who owns a cat?")
    retrieve = w.spans.one("retrieve")
    read = lineage(retrieve)
    assert read["inputs"] == [query("Who owns a cat?")]
    assert read["delivered"] == [mem(item["id"], item["memory"]) for item in results]
    assert read["scores"] == pytest.approx([item["score"] for item in results])
    assert read["score_kind"] == ("similarity" if MAJOR == 1 else "fused")
    assert read["limits"]["k"] == 10
    assert retrieve["attributes"]["gen_ai.memory.record.count"] == len(results)
    assert retrieve["attributes"]["memtrace.graph.id"] == GRAPH


def test_search_names_what_the_threshold_cut(w: World) -> None:
    lisbon, cat = w.store("Lives in Lisbon", "Owns a grey cat")
    [found] = w.search("Owns a grey cat", threshold=0.9)
    assert found["id"] == cat
    [[ref, score, reason, rank]] = lineage(w.spans.one("retrieve"))["dropped"]
    assert (ref, reason, rank) == (mem(lisbon, "Lives in Lisbon"), "threshold", 2)
    assert score < 0.9


def test_search_with_a_reranker_shows_what_it_was_given_and_what_it_kept(w: World) -> None:
    class KeepsTheLast:
        def rerank(self, query: str, documents: list[Any], top_k: int | None = None) -> list[Any]:
            return [{**documents[-1], "rerank_score": 0.75}]

    w.store("Owns a grey cat", "Owns a dog")
    w.memory.reranker = KeepsTheLast()
    [kept] = w.search("Owns a grey cat", rerank=True, threshold=0.01)
    retrieve, rerank = w.spans.one("retrieve"), w.spans.one("rerank")
    [cat] = [ref for ref in lineage(rerank)["inputs"] if ref.startswith("mem:")][:-1]
    dog = mem(kept["id"], "Owns a dog")
    assert rerank["parent_span_id"] == retrieve["span_id"]
    assert lineage(rerank) == {
        "inputs": [query("Owns a grey cat"), cat, dog],
        "delivered": [dog],
        "scores": [0.75],
        "score_kind": "other",
        "dropped": [[cat, None, "rerank"]],
        "limits": {"k": 10},
    }
    assert lineage(retrieve)["delivered"] == [dog]
    assert [entry[0] for entry in lineage(retrieve)["dropped"]] == [cat]
    assert lineage(retrieve)["dropped"][0][2:] == ["rerank", 1]


def test_a_failing_reranker_is_visible_and_the_results_are_mem0s(w: World) -> None:
    class Broken:
        def rerank(self, query: str, documents: list[Any], top_k: int | None = None) -> list[Any]:
            raise ConnectionError("reranker is down")

    w.store("Owns a grey cat")
    w.memory.reranker = Broken()
    assert len(w.search("cat", rerank=True, threshold=0.01)) == 1
    assert w.spans.one("rerank")["attributes"]["error.type"] == "ConnectionError"
    assert len(lineage(w.spans.one("retrieve"))["delivered"]) == 1


def test_get_all_and_get_are_reads_without_a_query(w: World) -> None:
    ids = w.store("Lives in Lisbon", "Owns a grey cat")
    results = w.get_all()
    everything = lineage(w.spans.one("retrieve"))
    assert everything["delivered"] == [mem(item["id"], item["memory"]) for item in results]
    assert "inputs" not in everything
    w.spans.clear()

    w.call("get", ids[0])
    one = w.spans.one("retrieve")
    assert lineage(one) == {"delivered": [mem(ids[0], "Lives in Lisbon")]}
    assert one["attributes"]["gen_ai.memory.record.id"] == ids[0]
    assert one["attributes"]["memtrace.graph.id"] == GRAPH


def test_a_public_update_supersedes_the_version_that_was_stored(w: World) -> None:
    [record_id] = w.store("Lives in Lisbon")
    w.call("update", record_id, "Lives in Porto")
    update = w.spans.one("update")
    assert lineage(update) == {
        "outputs": [mem(record_id, "Lives in Porto")],
        "supersedes": [mem(record_id, "Lives in Lisbon")],
    }
    assert update["attributes"]["memtrace.graph.id"] == GRAPH
    assert update["attributes"]["gen_ai.memory.record.id"] == record_id
    assert w.stored() == {record_id: "Lives in Porto"}


def test_a_public_delete_leaves_a_tombstone(w: World) -> None:
    gone, _kept = w.store("Lives in Lisbon", "Owns a cat")
    w.call("delete", gone)
    delete = w.spans.one("delete")
    assert lineage(delete) == {
        "outputs": [f"mem:mem0:{gone}@deleted"],
        "supersedes": [mem(gone, "Lives in Lisbon")],
    }
    assert delete["attributes"]["memtrace.graph.id"] == GRAPH


def test_delete_all_is_one_delete_per_record(w: World) -> None:
    ids = w.store("Lives in Lisbon", "Owns a cat")
    w.call("delete_all", user_id=mem0_kit.USER)
    [parent] = [span for span in w.spans.of("delete") if not span["parent_span_id"]]
    below = [span for span in w.spans.of("delete") if span["parent_span_id"] == parent["span_id"]]
    assert lineage(parent) == {"composite": True}
    assert {lineage(span)["outputs"][0] for span in below} == {
        f"mem:mem0:{record_id}@deleted" for record_id in ids
    }
    assert w.stored() == {}


def test_the_librarys_exceptions_pass_unchanged_and_are_recorded(w: World) -> None:
    missing = "00000000-0000-4000-8000-000000000000"
    for method, step, arguments in (
        ("update", "update", (missing, "text")),
        ("delete", "delete", (missing,)),
    ):
        seen = error_seen(w.call, method, *arguments)
        assert seen in ("ValueError", "AttributeError")
        span = w.spans.one(step)
        assert span["status"] == "ERROR"
        assert span["attributes"]["error.type"] == seen
        assert "outputs" not in lineage(span)


def test_messages_of_an_add_that_mem0_refuses_never_enter(w: World) -> None:
    with pytest.raises(Exception, match="user_id"):
        w.call("add", "My cat is grey")
    add = w.spans.one("add")
    assert add["attributes"]["error.type"] == "mem0.exceptions.ValidationError"
    assert w.spans.steps() == ["add"]


def test_a_wrong_call_raises_what_mem0_raises(w: World) -> None:
    with pytest.raises(TypeError):
        w.call("search")
    assert w.spans.all() == []


def test_the_graph_is_user_else_agent_else_run(w: World) -> None:
    message = [{"role": "user", "content": "hello there"}]
    for scope in ({"agent_id": "a", "run_id": "r"}, {"run_id": "r"}):
        w.call("add", message, infer=False, **scope)
    assert [span["attributes"]["memtrace.graph.id"] for span in w.spans.of("add")] == [
        "agent:a",
        "run:r",
    ]


def test_a_read_names_the_other_graphs_that_it_got_records_from(w: World) -> None:
    w.call("add", "My cat is grey", user_id="ana", agent_id="bot", infer=False)
    w.spans.clear()
    scope = {"agent_id": "bot"} if MAJOR == 1 else {"filters": {"agent_id": "bot"}}
    w.call("search", "cat", **scope)
    retrieve = w.spans.one("retrieve")
    assert retrieve["attributes"]["memtrace.graph.id"] == "agent:bot"
    assert lineage(retrieve)["reads"] == ["user:ana"]


def test_a_graph_that_the_program_declares_goes_before_mem0s_scope(w: World) -> None:
    with memtrace_otel.graph("team:blue"):
        w.add("My cat is grey", infer=False)
        w.search("cat")
    graphs = {span["attributes"]["memtrace.graph.id"] for span in w.spans.all()}
    assert graphs == {"team:blue"}


@pytest.mark.parametrize("kind", KINDS)
def test_user_ids_and_content_leave_only_as_keyed_digests_by_default(
    tmp_path: Path, kind: str
) -> None:
    with world(tmp_path, kind, content=False, digest_key="secret") as w:
        w.add("My cat is grey", infer=False)
        w.search("cat")
        for span in w.spans.all():
            shown = repr(span)
            assert "grey" not in shown
            assert "ana" not in span["attributes"]["memtrace.graph.id"]
            assert testing.values(span) == {}
            assert testing.lineage(span)["key"] != "plain"


def test_an_ingested_message_that_repeats_an_answer_has_it_as_input(w: World) -> None:
    answer = memtrace_otel.answer("The museum opens at nine.")
    with memtrace_otel.operation("answer") as operation:
        operation.outputs(answer)
    messages = [{"role": "assistant", "content": "The museum opens at nine."}]
    w.add(messages, infer=False)
    assert lineage(w.spans.one("ingest"))["inputs"] == [answer.ref]


def test_message_times_come_from_the_message_or_the_metadata(w: World) -> None:
    w.add(
        [
            {"role": "user", "content": "one", "timestamp": 1_767_225_600},
            {"role": "user", "content": "two"},
        ],
        infer=False,
        metadata={"date": "2026-02-01"},
    )
    times = [lineage(span)["times"] for span in w.spans.of("ingest")]
    assert times == [
        {msg("one"): "2026-01-01T00:00:00+00:00"},
        {msg("two"): "2026-02-01T00:00:00+00:00"},
    ]
