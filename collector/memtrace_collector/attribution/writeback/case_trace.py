"""The self-contained trace of a case: its root, a child per hop and one per question to a model,
stamped now. Pure.

It says all that it can of the operations it speaks of: their own traces may have expired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.writeback import asked, identity, sizes, spans
from memtrace_collector.attribution.writeback.story import story
from memtrace_collector.attribution.writeback.told import Told, span_key
from memtrace_otel import semconv

HOP_NS = 1_000_000
"""From one hop to the next, so that they are shown in order; when they happened, they say."""


def case_trace(told: Told) -> bytes:
    """An OTLP export request with every span of the case trace."""
    root, path = told.root, told.verdict["path"]
    asked_ns = told.now_ns + len(path) * HOP_NS
    questions = asked.chat_spans(
        told.verdict, root.trace_id, root.span_id, asked_ns, quotes=told.target.quotes
    )
    end_ns = max(told.now_ns + HOP_NS, asked_ns + len(questions) * asked.CALL_NS)
    by_service: dict[str, list[Span]] = {spans.SERVICE: [_root(told, end_ns)]}
    for number, hop in enumerate(path):
        by_service.setdefault(hop["service"] or spans.SERVICE, []).append(_hop(told, number, hop))
    by_service[spans.SERVICE] += questions
    return spans.trace_request(by_service)


def _root(told: Told, end_ns: int) -> Span:
    links = [spans.link(told.answer.key)]
    if told.revision > 1:
        links.append(spans.link(told.root_of(told.revision - 1)))
    return Span(
        trace_id=bytes.fromhex(told.root.trace_id),
        span_id=bytes.fromhex(told.root.span_id),
        name=semconv.SPAN_CASE,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=told.now_ns,
        end_time_unix_nano=end_ns,
        attributes=sizes.attributes(
            {
                semconv.MEMTRACE_ATTRIBUTION_EXPLANATION: told.explanation,
                semconv.MEMTRACE_CASE_PATH: story(told.verdict["path"]),
                **told.attributes(told.answer_ids()),
            }
        ),
        links=links,
    )


def _hop(told: Told, number: int, hop: Mapping[str, Any]) -> Span:
    start = told.now_ns + number * HOP_NS
    is_at_fault = told.is_fault and hop["decisive"]
    key = span_key(hop["span"]) if hop["span"] else None
    op = told.operations.get(key) if key else None
    return Span(
        trace_id=bytes.fromhex(told.root.trace_id),
        span_id=bytes.fromhex(identity.hop_span_id(told.case_id, told.revision, number)),
        parent_span_id=bytes.fromhex(told.root.span_id),
        name=semconv.SPAN_HOP,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=start,
        end_time_unix_nano=start + HOP_NS,
        attributes=sizes.attributes(
            {
                semconv.MEMTRACE_HOP_OUTCOME: hop["outcome"],
                semconv.MEMTRACE_HOP_KIND: hop["kind"],
                semconv.MEMTRACE_HOP_OPERATION: hop["operation"],
                semconv.MEMTRACE_HOP_SERVICE: hop["service"],
                semconv.MEMTRACE_HOP_SYSTEM: hop.get("system"),
                semconv.MEMTRACE_HOP_TIME: spans.rfc3339(hop["time_ns"]),
                semconv.MEMTRACE_HOP_RECORD: hop["record"],
                semconv.MEMTRACE_HOP_VERSIONS: hop["versions"],
                semconv.MEMTRACE_GRAPH_ID: op.graph_id if op else None,
                semconv.MEMTRACE_HOP_TRACE_ID: key and key.trace_id,
                semconv.MEMTRACE_HOP_SPAN_ID: key and key.span_id,
                semconv.MEMTRACE_CASE_ID: told.case_id,
            }
        ),
        links=[spans.link(key)] if key else [],
        status=spans.status(is_at_fault, told.explanation),
    )
