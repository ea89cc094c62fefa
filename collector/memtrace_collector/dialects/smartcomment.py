"""smartcomment and MemTraceBench exports as spans of our contract, so that the log can take them.

Ids derive from the export's own, so importing a file twice changes nothing. Its retrieval edges
(query -> memory) become deliveries, its DELETED marker tombstones, its annotations flags with
evidence. Pure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects.smartcomment_document import (
    Annotation,
    Document,
    EdgeRow,
    Node,
    NotSmartcommentError,
    OperationRow,
    parse,
)
from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_otel import semconv, variables
from memtrace_otel.variables import PLAIN

__all__ = ["NotSmartcommentError", "to_request"]

SYSTEM = "smartcomment"
GOLD_ERROR_TYPE = "memtracebench.final_error_type"
GOLD_SPAN_ID = "memtracebench.final_span_id"

_SCORE = re.compile(r"score\D{0,12}?(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_STEPS_BY_NAME = (
    ("question-answering", semconv.STEP_ANSWER),
    ("llm-judge", semconv.STEP_JUDGE),
    ("extract", semconv.STEP_EXTRACT),
    ("boundary_detection", semconv.STEP_EXTRACT),
    ("finalize_memory_unit", semconv.STEP_CREATE),
    ("add_to_vector_store", semconv.STEP_CREATE),
    ("memory_system.add", semconv.STEP_CREATE),
    ("rerank", semconv.STEP_RERANK),
    ("retriev", semconv.STEP_RETRIEVE),
    ("search", semconv.STEP_RETRIEVE),
    ("agentic_", semconv.STEP_RETRIEVE),
    ("update", semconv.STEP_UPDATE),
)
_STEPS_BY_CATEGORY = {
    "extraction": semconv.STEP_EXTRACT,
    "update": semconv.STEP_UPDATE,
    "retrieval": semconv.STEP_RETRIEVE,
    "embedding": semconv.STEP_CREATE,
    "initialization": semconv.STEP_CREATE,
    "evaluation": semconv.STEP_JUDGE,
}
_READS = (semconv.STEP_RETRIEVE, semconv.STEP_RERANK)
_MARKER = "marker"
_DELETED = "deleted"


def to_request(document: object) -> ExportTraceServiceRequest:
    """One export as one trace request.

    Raises:
        NotSmartcommentError: the document is no such export.
    """
    return _Converter(parse(document)).request()


@dataclass(slots=True)
class _Converter:
    document: Document
    refs: dict[str, str] = field(default_factory=dict)
    described: set[str] = field(default_factory=set)
    """References whose content was already written down."""

    def request(self) -> ExportTraceServiceRequest:
        document = self.document
        self.refs = {node.id: _reference(node) for node in document.nodes.values()}
        flagged = {a.query_id: a for a in document.annotations}
        answered: set[str] = set()
        spans = [self._ingest(node) for node in self._entering()]
        for order, operation in enumerate(document.operations):
            span = self._operation(operation, order)
            query = self._query_of(operation)
            annotation = self._annotation_of(query, flagged)
            if annotation and _step(operation) == semconv.STEP_ANSWER:
                self._flag(span, annotation)
                answered.add(annotation.query_id)
            spans.append(span)
        spans.extend(
            self._flag_span(annotation)
            for annotation in document.annotations
            if annotation.query_id not in answered
        )
        request = ExportTraceServiceRequest()
        resource_spans = request.resource_spans.add()
        _put(resource_spans.resource.attributes, semconv.SERVICE_NAME, SYSTEM)
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.scope.name = "memtrace.import.smartcomment"
        scope_spans.spans.extend(spans)
        return request

    def _entering(self) -> list[Node]:
        """Messages and queries that no operation made."""
        made = {edge.target for row in self.document.operations for edge in row.edges}
        kinds = (semconv.KIND_MESSAGE, semconv.KIND_QUERY)
        return [
            node
            for node in self.document.nodes.values()
            if node.id not in made and _kind(node) in kinds
        ]

    def _ingest(self, node: Node) -> Span:
        ref = self.refs[node.id]
        seed = node.id if _kind(node) == semconv.KIND_QUERY else f"ingest {node.id}"
        span = self._span(seed, f"ingest {node.id}", semconv.STEP_INGEST, node.created_ns)
        self._finish(span, {semconv.OUTPUTS: [ref]}, [node])
        return span

    def _operation(self, row: OperationRow, order: int) -> Span:
        step = _step(row)
        query = self._query_of(row)
        # the order of the export decides between operations of one millisecond
        span = self._span(query.id if query else row.id, row.id, step, row.created_ns + order)
        span.name = _clean(row.name) or span.name
        nodes = self._ends(row.edges)
        self._finish(span, self._lineage(row.edges, step), nodes)
        return span

    def _lineage(self, edges: Sequence[EdgeRow], step: str) -> dict[str, Any]:
        inputs, outputs, delivered, pairs = _Ordered(), _Ordered(), _Ordered(), _Ordered()
        scores: dict[str, float | None] = {}
        for edge in edges:
            source, target = self._node(edge.source), self._node(edge.target)
            if source is not None and not _is_marker(source):
                inputs.add(self.refs[source.id])
            if target is None or _is_marker(target):
                deleted = target is not None and _DELETED in target.name.lower()
                if deleted and source is not None and _kind(source) == semconv.KIND_MEMORY:
                    record = variables.record_of(self.refs[source.id])
                    outputs.add(f"{record}@{semconv.DELETED_VERSION}")
                continue
            ref = self.refs[target.id]
            if step in _READS and _kind(target) == semconv.KIND_MEMORY:
                delivered.add(ref)
                scores[ref] = _score(edge.comment)
                continue
            outputs.add(ref)
            if source is not None and not _is_marker(source):
                pairs.add((self.refs[source.id], ref))
        made = set(outputs)
        lineage = {
            semconv.INPUTS: [ref for ref in inputs if ref not in delivered],
            semconv.OUTPUTS: list(outputs),
            semconv.DELIVERED: list(delivered),
            semconv.SCORES: [scores[ref] for ref in delivered] if any(scores.values()) else [],
            semconv.SUPERSEDES: _superseded(inputs, made),
        }
        if len(pairs) < len(lineage[semconv.INPUTS]) * len(made):
            relation = semconv.RELATION_DERIVED_FROM
            lineage[semconv.EDGES] = [[source, target, relation] for source, target in pairs]
        return {key: value for key, value in lineage.items() if value}

    def _ends(self, edges: Iterable[EdgeRow]) -> list[Node]:
        found = (self._node(end) for edge in edges for end in (edge.source, edge.target))
        return [node for node in found if node is not None and not _is_marker(node)]

    def _node(self, identifier: str | None) -> Node | None:
        return self.document.node(identifier) if identifier else None

    def _query_of(self, row: OperationRow) -> Node | None:
        """The question an operation belongs to: reads and answers of one question are one trace."""
        if _step(row) not in (*_READS, semconv.STEP_ANSWER):
            return None
        nodes = self._ends(row.edges)
        return next((node for node in nodes if _kind(node) == semconv.KIND_QUERY), None)

    def _annotation_of(
        self, query: Node | None, annotations: dict[str, Annotation]
    ) -> Annotation | None:
        if query is None:
            return None
        for query_id, annotation in annotations.items():
            named = self.document.node(query_id)
            if named is not None and named.identity == query.identity:
                return annotation
        return None

    def _span(self, trace_seed: str, span_seed: str, step: str, start_ns: int) -> Span:
        graph_id = self.document.graph_id
        span = Span(
            trace_id=_digest(f"trace {graph_id} {trace_seed}")[:16],
            span_id=_digest(f"span {graph_id} {span_seed}")[:8],
            name=semconv.SPAN_NAMES[step],
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=max(start_ns, 1),
            end_time_unix_nano=max(start_ns, 1),
        )
        attributes: dict[str, int | str] = {
            semconv.MEMTRACE_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
            semconv.MEMTRACE_GRAPH_ID: f"{SYSTEM}:{graph_id}",
            semconv.MEMTRACE_STEP: step,
            semconv.MEMTRACE_SYSTEM: SYSTEM,
            semconv.MEMTRACE_CAPTURE: semconv.CAPTURE_DECLARED,
        }
        for name, value in attributes.items():
            _put(span.attributes, name, value)
        return span

    def _finish(self, span: Span, lineage: dict[str, Any], nodes: Iterable[Node]) -> None:
        values = {}
        for node in nodes:
            ref = self.refs[node.id]
            if ref not in self.described:
                self.described.add(ref)
                values[ref] = node.value
        if values:
            _put(span.attributes, semconv.MEMTRACE_VALUES, _json(values))
        lineage[semconv.KEY] = semconv.KEY_PLAIN
        _put(span.attributes, semconv.MEMTRACE_LINEAGE, _json(lineage))

    def _flag(self, span: Span, annotation: Annotation) -> None:
        nodes = (self.document.node(name) for name in annotation.evidence_ids)
        evidence = [self.refs[node.id] for node in nodes if node is not None]
        _put(span.attributes, semconv.MEMTRACE_FLAGGED, True)
        _put(span.attributes, semconv.MEMTRACE_EXPECTED, annotation.golden_answers)
        _put(span.attributes, semconv.MEMTRACE_FLAG_SOURCE, "dataset")
        _put(span.attributes, semconv.MEMTRACE_EVIDENCE, evidence)
        _put(span.attributes, GOLD_ERROR_TYPE, annotation.error_type)
        gold = _digest(f"span {self.document.graph_id} {annotation.operation_id}")[:8]
        _put(span.attributes, GOLD_SPAN_ID, gold.hex())

    def _flag_span(self, annotation: Annotation) -> Span:
        """An annotation whose answer is not in the file still names its question's trace."""
        node = self.document.node(annotation.query_id)
        seed = node.id if node else annotation.query_id
        moment = node.created_ns if node else 0
        span = self._span(f"flag {seed}", f"flag {seed}", semconv.STEP_FLAG, moment)
        target = _digest(f"trace {self.document.graph_id} {seed}")[:16]
        _put(span.attributes, semconv.MEMTRACE_FLAG_TRACE_ID, target.hex())
        self._flag(span, annotation)
        return span


class _Ordered(dict[Any, None]):
    """A set that keeps its order."""

    def add(self, item: object) -> None:
        self[item] = None


def _kind(node: Node) -> str:
    name, category = node.name.lower(), node.category
    if "query" in category or node.class_name == "query":
        return semconv.KIND_QUERY
    if category == "message":
        return semconv.KIND_MESSAGE
    if "memory" in category or name.startswith(("memory-unit", "message-buffer")):
        return semconv.KIND_MEMORY
    if category == "message_buffer":
        return semconv.KIND_MEMORY
    if "prompt" in category:
        return semconv.KIND_PROMPT
    if "prediction" in (category, name):
        return semconv.KIND_ANSWER
    if "context" in category or name == "context":
        return semconv.KIND_CONTEXT
    return semconv.KIND_FACT


def _step(row: OperationRow) -> str:
    name = row.name.lower()
    for part, step in _STEPS_BY_NAME:
        if part in name:
            return step
    return _STEPS_BY_CATEGORY.get(row.category, semconv.STEP_CONSOLIDATE)


def _is_marker(node: Node) -> bool:
    return node.category == _MARKER


def _reference(node: Node) -> str:
    return str(variables.make(_kind(node), node.value, key=PLAIN, id=node.identity))


def _superseded(inputs: Iterable[str], outputs: Iterable[str]) -> list[str]:
    """Inputs of which another version was made."""
    made: dict[str, set[str]] = defaultdict(set)
    for ref in outputs:
        made[variables.record_of(ref)].add(ref)
    return [ref for ref in inputs if made.get(variables.record_of(ref), set()) - {ref}]


def _score(comment: str) -> float | None:
    match = _SCORE.search(comment)
    return float(match[1]) if match else None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _json(value: object) -> str:
    # escaped, because protobuf takes no lone surrogate
    return json.dumps(value, separators=(",", ":"))


def _put(attributes: Any, name: str, value: AttributeValue) -> None:
    attributes.extend(encode({name: value}))
