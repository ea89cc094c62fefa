"""An export of smartcomment becomes spans of the contract that give its graph."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_collector.dialects import registry, smartcomment
from memtrace_collector.graph import flags
from memtrace_collector.graph.ancestry import ancestry
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.store.in_memory import InMemoryFactStore

GRAPH = "smartcomment:g1"


def node(name: str, value: str, category: str, version: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "value": value,
        "category": category,
        "class_name": more.get("class_name", ""),
        "full_node_id": f"{name}@{version}",
        "created_at": "2026-01-02 10:00:00.000",
    }


def edge(op_id: str, source: str, target: str, comment: str = "") -> dict[str, Any]:
    return {
        "op_id": op_id,
        "source_full_node_id": source,
        "target_full_node_id": target,
        "comment": comment,
    }


def op(op_id: str, name: str, category: str, minute: int) -> dict[str, Any]:
    created = f"2026-01-02 10:{minute:02}:00.000"
    return {"op_id": op_id, "op_name": name, "category": category, "created_at": created}


def export() -> dict[str, Any]:
    nodes = [
        node("m1", "I moved to Lisbon", "message"),
        node("facts-1", '["lives in Lisbon"]', "llm_response"),
        node("memory-unit-7", "lives in Lisbon", "memory_entry"),
        node("memory-unit-7", "lives in Porto", "memory_entry", version=2),
        node("memory-unit-8", "likes tea", "memory_entry"),
        node("DELETED", "DELETED", "marker"),
        node("q1", "Which city?", "message & query"),
        node("c1", "lives in Porto", "context"),
        node("p1", "Porto", "prediction"),
    ]
    operations = [
        op("o1", "memory_system.extract_facts", "extraction", 1),
        op("o2", "memory_system.update_memory_decision", "update", 2),
        op("o3", "memory_system.update_memory_decision", "update", 3),
        op("o4", "memory_system.search_vector_store", "retrieval", 4),
        op("o5", "question-answering", "evaluation", 5),
    ]
    edges = [
        edge("o1", "m1@1", "facts-1@1"),
        edge("o2", "facts-1@1", "memory-unit-7@1"),
        edge("o3", "memory-unit-7@1", "memory-unit-7@2"),
        edge("o3", "memory-unit-8@1", "DELETED@1"),
        edge("o4", "q1@1", "memory-unit-7@2", "score: 0.75"),
        edge("o5", "memory-unit-7@2", "c1@1"),
        edge("o5", "q1@1", "p1@1"),
        edge("o5", "c1@1", "p1@1"),
    ]
    annotation = {
        "query_id": "q1",
        "query": "Which city?",
        "golden_answers": ["Lisbon"],
        "source_evidence_ids": ["m1@1"],
        "final_error_type": "UpdateError",
        "final_op_id": "o3",
    }
    data = {"nodes": nodes, "edges": edges, "operations": operations, "annotations": [annotation]}
    return {"graph_id": "g1", "data": data}


def store_of(document: object) -> InMemoryFactStore:
    request = smartcomment.to_request(document)
    return InMemoryFactStore.of(registry.read_request("default", request))


def test_operations_get_their_steps_and_the_facts_are_without_problems() -> None:
    facts = list(registry.read_request("default", smartcomment.to_request(export())))
    assert all(not item.problems for item in facts)
    steps = {item.operation.name: item.operation.step for item in facts if item.operation}
    assert steps["memory_system.extract_facts"] == "extract"
    assert steps["memory_system.search_vector_store"] == "retrieve"
    assert steps["question-answering"] == "answer"


def test_reading_is_a_delivery_with_its_score_not_a_production() -> None:
    store = store_of(export())
    (read,) = [item for item in store.all_operations(GRAPH) if item.step == "retrieve"]
    assert len(read.delivered) == 1 and read.outputs == () and read.scores == (0.75,)


def test_versions_of_a_record_form_its_history_and_the_marker_a_tombstone() -> None:
    store = store_of(export())
    lookups = Lookups(store)
    assert len(lookups.history(GRAPH, "mem:memory-unit-7")) == 2
    (gone,) = lookups.history(GRAPH, "mem:memory-unit-8")
    assert gone.version == "mem:memory-unit-8@deleted"


def test_an_annotation_flags_its_answer_with_evidence_and_the_case_reaches_it() -> None:
    store = store_of(export())
    (flag,) = store.flags()
    answer = flags.resolve(store, flag)
    assert answer is not None and answer.step == "answer"
    assert flag.expected == "Lisbon" and flag.source == "dataset"
    found = ancestry(Lookups(store), answer)
    assert {item.step for item in found.operations.values()} >= {"retrieve", "update", "extract"}
    case = load_case(store, answer, flag)
    assert case.evidence == flag.evidence and case.evidence[0] in case.texts


def test_importing_twice_gives_the_same_bytes() -> None:
    one, two = (smartcomment.to_request(export()).SerializeToString() for _ in range(2))
    assert one == two


def test_an_annotation_without_its_answer_is_kept_as_a_flag_on_the_question() -> None:
    document = export()
    document["data"]["operations"].pop()
    store = store_of(document)
    (flag,) = store.flags()
    assert flag.expected == "Lisbon" and flags.resolve(store, flag) is None


@pytest.mark.parametrize(
    "document", [None, [], {}, {"data": []}, {"data": {"nodes": []}}, {"data": {"nodes": 5}}]
)
def test_another_document_is_refused_with_what_is_missing(document: object) -> None:
    with pytest.raises(smartcomment.NotSmartcommentError):
        smartcomment.to_request(document)


def test_junk_inside_an_export_loses_only_itself() -> None:
    document = export()
    document["data"]["nodes"] += [{}, {"name": "x\ud800", "value": "\ud800"}, 5]
    document["data"]["edges"] += [{}, edge("o1", "unknown@1", "NONE@1")]
    document["data"]["operations"] += [{"op_id": "o9"}, "junk"]
    assert len(list(store_of(document).all_operations(GRAPH))) == 8
