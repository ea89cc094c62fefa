"""The smallest slice of spans that holds a failure, ready to be imported elsewhere. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.graph.facts import OperationKey
from memtrace_otel import canonical_json, semconv

_KEPT = frozenset(
    (
        semconv.MEMTRACE_SCHEMA_VERSION,
        semconv.MEMTRACE_GRAPH_ID,
        semconv.MEMTRACE_STEP,
        semconv.MEMTRACE_SYSTEM,
        semconv.MEMTRACE_SYSTEM_VERSION,
        semconv.MEMTRACE_CAPTURE,
        semconv.MEMTRACE_FLAGGED,
        semconv.MEMTRACE_EVIDENCE,
        semconv.MEMTRACE_FLAG_SOURCE,
        semconv.MEMTRACE_FLAG_TRACE_ID,
        semconv.MEMTRACE_FLAG_SPAN_ID,
        semconv.MEMTRACE_CASE_ID,
        semconv.MEMTRACE_ATTRIBUTION_STAGE,
        semconv.MEMTRACE_ATTRIBUTION_TYPE,
        semconv.MEMTRACE_ATTRIBUTION_METHOD,
        semconv.MEMTRACE_ATTRIBUTION_REVISION,
        semconv.MEMTRACE_ANSWER_TRACE_ID,
        semconv.MEMTRACE_ANSWER_SPAN_ID,
        semconv.MEMTRACE_JUDGEMENT_AGREEMENT,
        semconv.MEMTRACE_JUDGEMENT_DECISIVE,
        semconv.MEMTRACE_JUDGEMENT_LAST_RIGHT,
        semconv.MEMTRACE_JUDGEMENT_FIRST_WRONG,
        semconv.GEN_AI_OPERATION_NAME,
        semconv.GEN_AI_PROVIDER_NAME,
        semconv.GEN_AI_REQUEST_MODEL,
        semconv.GEN_AI_RESPONSE_MODEL,
        semconv.GEN_AI_RESPONSE_ID,
        semconv.GEN_AI_CONVERSATION_ID,
        semconv.GEN_AI_MEMORY_STORE_ID,
        semconv.GEN_AI_MEMORY_RECORD_ID,
        semconv.GEN_AI_MEMORY_RECORD_COUNT,
        semconv.GEN_AI_EVALUATION_NAME,
        semconv.GEN_AI_EVALUATION_SCORE_VALUE,
        semconv.GEN_AI_EVALUATION_SCORE_LABEL,
        semconv.ERROR_TYPE,
        semconv.SERVICE_NAME,
    )
)
"""What stays when a slice is redacted. A list of what may stay, so that a name nobody thought
of is taken out."""


def case_slice(
    requests: Iterable[ExportTraceServiceRequest],
    keys: Collection[OperationKey],
    gapless: Collection[str],
    *,
    redact: bool = False,
) -> ExportTraceServiceRequest:
    """The spans ``keys`` out of ``requests``, each once.

    Args:
        requests: the requests that brought them; changed in place.
        keys: the spans wanted.
        gapless: processes of whose sequence nothing is missing. Their spans lose their
            numbers, for in a slice the gaps would say that something was lost.
        redact: without captured content.
    """
    wanted = set(keys)
    result = ExportTraceServiceRequest()
    for request in requests:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                spans = [span for span in scope.spans if _take(span, wanted)]
                if not spans:
                    continue
                for span in spans:
                    _without_sequence(span, gapless)
                    if redact:
                        _redact(span)
                part = result.resource_spans.add()
                part.resource.CopyFrom(resource.resource)
                part.scope_spans.add(spans=spans).scope.CopyFrom(scope.scope)
                if redact:
                    _keep_attributes(part.resource.attributes)
    return result


def span_keys(request: ExportTraceServiceRequest) -> list[OperationKey]:
    """Every span of a request."""
    return [
        _key(span)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _key(span: Span) -> OperationKey:
    return OperationKey(span.trace_id.hex(), span.span_id.hex())


def _take(span: Span, wanted: set[OperationKey]) -> bool:
    key = _key(span)
    if key not in wanted:
        return False
    wanted.remove(key)
    return True


def _without_sequence(span: Span, gapless: Collection[str]) -> None:
    parts = [item for item in span.attributes if _is_lineage(item.key)]
    parts.sort(key=lambda item: _part_number(item.key))
    try:
        lineage = json.loads("".join(item.value.string_value for item in parts))
    except ValueError:
        return
    process = str(lineage.pop(semconv.SEQ, "")).rpartition(":")[0]
    if process not in gapless:
        return
    kept = [item for item in span.attributes if not _is_lineage(item.key)]
    del span.attributes[:]
    span.attributes.extend(kept)
    item = span.attributes.add(key=semconv.MEMTRACE_LINEAGE)
    item.value.string_value = canonical_json.dumps(lineage)


def _redact(span: Span) -> None:
    _keep_attributes(span.attributes)
    span.status.message = ""
    for event in span.events:
        _keep_attributes(event.attributes)
    for link in span.links:
        kept = [item for item in link.attributes if item.key == semconv.LINK_RELATION]
        del link.attributes[:]
        link.attributes.extend(kept)


def _keep_attributes(items: Any) -> None:
    kept = [item for item in items if item.key in _KEPT or _is_lineage(item.key)]
    del items[:]
    items.extend(kept)


def _is_lineage(key: str) -> bool:
    return key == semconv.MEMTRACE_LINEAGE or _part_number(key) > 0


def _part_number(key: str) -> int:
    """The number of a part of a lineage that was split over several attributes; else 0."""
    name, _, number = key.rpartition(".")
    return int(number) if name == semconv.MEMTRACE_LINEAGE and number.isdecimal() else 0
