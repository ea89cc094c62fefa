"""MemTraceBench files in small, one per shape of system, as MemBase annotates them.

Names of operations, categories, classes and identities, and the annotation's fields, are those
that the benchmark's systems record; only the texts are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CREATED = "2026-01-02 10:{:02}:00.000"
NONE = "NONE@1"


@dataclass
class Export:
    """Collects nodes, operations and edges of one graph, a minute apart."""

    graph_id: str
    metadata: dict[str, Any] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    operations: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)

    def node(
        self, name: str, value: str, category: str, version: int = 1, class_name: str = "variable"
    ) -> str:
        identifier = f"{class_name}:{name}@{version}"
        self.nodes.append(
            {
                "name": name,
                "version": version,
                "value": value,
                "comment": "",
                "category": category,
                "class_name": class_name,
                "node_id": f"{name}@{version}",
                "full_node_id": identifier,
                "full_name": f"{class_name}:{name}",
                "created_at": CREATED.format(len(self.operations)),
                "metadata": {},
            }
        )
        return identifier

    def op(self, op_id: str, name: str, category: str, *edges: tuple[str, str, str]) -> str:
        self.operations.append(
            {
                "op_id": op_id,
                "op_name": name,
                "comment": "",
                "category": category,
                "created_at": CREATED.format(len(self.operations) + 1),
                "metadata": {},
            }
        )
        for number, (source, target, comment) in enumerate(edges):
            self.edges.append(
                {
                    "edge_id": f"{op_id}-{number}",
                    "op_id": op_id,
                    "source_full_node_id": source,
                    "target_full_node_id": target,
                    "category": category,
                    "comment": comment,
                }
            )
        return op_id

    def answered(self, query: str, question: str, units: list[str], context: str, said: str) -> str:
        """The evaluation stage: question-answering and llm-judge."""
        at = len(self.operations)
        made = self.node(f"context-{at}", context, "context")
        prompt = self.node("question-answering-prompt", "Answer from: {context}", "prompt")
        prediction = self.node(f"prediction-{at}", said, "prediction")
        answer = self.op(
            f"qa-{at}",
            "question-answering",
            "evaluation",
            *((unit, made, "") for unit in units),
            *((source, prediction, "") for source in (query, made, prompt)),
        )
        score = self.node(f"judge_score-{at}", "0.0", "judge_score")
        response = self.node(f"judge_response-{at}", "Wrong.", "llm_response")
        self.op(
            f"judge-{at}",
            "llm-judge",
            "evaluation",
            (query, response, ""),
            (prediction, response, ""),
            (response, score, ""),
        )
        return answer

    def annotate(self, query: str, golden: str, evidence: str, label: str, op_id: str) -> None:
        self.annotations.append(
            {
                "query_id": query.partition(":")[2].partition("@")[0],
                "query": "",
                "golden_answers": [golden],
                "prediction": "",
                "source_evidence_ids": [evidence],
                "final_error_type": label,
                "final_op_id": op_id,
            }
        )

    def document(self) -> dict[str, Any]:
        return {
            "graph_id": self.graph_id,
            "user_id": "u1",
            "project_id": "p1",
            "storage_path": None,
            "strict": True,
            "driver_type": "in_memory",
            "created_at": CREATED.format(0),
            "metadata": self.metadata,
            "data": {
                "nodes": self.nodes,
                "edges": self.edges,
                "operations": self.operations,
                "sessions": [],
                "annotations": self.annotations,
            },
        }


def message(export: Export, name: str, text: str) -> str:
    return export.node(name, text, "message")


def question(export: Export, name: str, text: str) -> str:
    return export.node(name, text, "message & query", class_name="query")


def mem0() -> dict[str, Any]:
    """Two failures: a fact that was never extracted, and a record that was overwritten."""
    made = Export("mem0-1", {"layer_type": "Mem0Layer", "memtracebench_dataset_source": "LoCoMo"})
    told = message(made, "m1", "I adopted a dog called Biscuit, and my sister moved to Lisbon.")
    facts = made.node("extracted_facts-1", '["sister moved to Lisbon"]', "llm_response")
    made.op("extract-1", "memory_system.extract_facts", "extraction", (told, facts, ""))
    unit = made.node("memory-unit-1", "The sister lives in Lisbon", "memory_entry")
    decided = made.node("update_action-1", '[{"event": "ADD"}]', "llm_response")
    made.op(
        "decide-1",
        "memory_system.update_memory_decision",
        "update",
        (facts, decided, ""),
        (decided, unit, ""),
    )
    again = message(made, "m2", "My brother settled in Porto last year.")
    facts2 = made.node("extracted_facts-2", '["brother settled in Porto"]', "llm_response")
    made.op("extract-2", "memory_system.extract_facts", "extraction", (again, facts2, ""))
    action = made.node("update_action-2", '[{"event": "UPDATE"}]', "llm_response")
    wrong = made.node("memory-unit-1", "The brother settled in Porto", "memory_entry", version=2)
    made.op(
        "decide-2",
        "memory_system.update_memory_decision",
        "update",
        (facts2, action, ""),
        (unit, wrong, ""),
        (action, wrong, ""),
    )
    dog = question(made, "q1", "What is the name of the dog that was adopted?")
    made.op(
        "search-1", "memory_system.search_vector_store", "retrieval", (dog, wrong, "score: 0.31")
    )
    made.answered(dog, "", [wrong], "The brother settled in Porto", "I do not know.")
    made.annotate(dog, "Biscuit", told, "ExtractionError", "extract-1")
    city = question(made, "q2", "Which city did the sister move to?")
    made.op(
        "search-2", "memory_system.search_vector_store", "retrieval", (city, wrong, "score: 0.52")
    )
    made.answered(city, "", [wrong], "The brother settled in Porto", "Porto")
    made.annotate(city, "Lisbon", told, "UpdateError", "decide-2")
    return made.document()


def rag() -> dict[str, Any]:
    """A chunk that was kept and not retrieved, and a label that blames the reference."""
    made = Export("rag-1", {"memtracebench_dataset_source": "LongMemEval"})
    told = message(made, "m1", "The appointment with Doctor Okafor is on Thursday at noon.")
    other = message(made, "m2", "The choir sings Mozart in the old church.")
    units = []
    for number, source in enumerate((told, other), 1):
        text = made.nodes[number - 1]["value"]
        buffer = made.node("message-buffer", text, "message_buffer", version=number)
        document = made.node(f"document-{number}", text, "temporary_variable")
        made.op(
            f"buffer-{number}",
            "memory_system.message_buffer_update",
            "update",
            (source, buffer, ""),
            (source, document, ""),
            (buffer, document, ""),
        )
        unit = made.node(f"memory-unit-{number}", text, "memory_entry")
        made.op(f"add-{number}", "memory_system.add", "update", (document, unit, ""))
        units.append(unit)
    asked = question(made, "q1", "When is the appointment with Doctor Okafor?")
    made.op("retrieve-1", "memory_system.retrieve", "retrieval", (asked, units[1], "score: 0.2"))
    made.answered(
        asked, "", [units[1]], "The choir sings Mozart in the old church.", "I do not know."
    )
    made.annotate(asked, "Thursday at noon", told, "RetrievalError", "retrieve-1")
    choir = question(made, "q2", "What does the choir sing?")
    made.op("retrieve-2", "memory_system.retrieve", "retrieval", (choir, units[1], "score: 0.9"))
    answer = made.answered(
        choir, "", [units[1]], "The choir sings Mozart in the old church.", "Mozart"
    )
    made.annotate(choir, "Verdi", other, "AnnotationError", answer)
    return made.document()


def long_context() -> dict[str, Any]:
    """The window trimmed the message away."""
    made = Export("long-1", {"memtracebench_dataset_source": "RealMem"})
    told = message(made, "m1", "My locker number at the gym is 417.")
    first = made.node("memory-unit", "My locker number at the gym is 417.", "memory_entry")
    made.op("update-1", "memory_system.memory_update", "update", (told, first, ""))
    later = message(made, "m2", "The weather was lovely in the mountains today.")
    second = made.node(
        "memory-unit", "The weather was lovely in the mountains today.", "memory_entry", version=2
    )
    made.op(
        "update-2",
        "memory_system.memory_update",
        "update",
        (later, second, ""),
        (first, second, ""),
    )
    asked = question(made, "q1", "What is the locker number at the gym?")
    made.op("retrieve-1", "memory_system.retrieve", "retrieval", (asked, second, ""))
    made.answered(
        asked, "", [second], "The weather was lovely in the mountains today.", "I do not know."
    )
    made.annotate(asked, "417", told, "UpdateError", "update-2")
    return made.document()
