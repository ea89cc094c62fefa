"""The self-contained trace of a case: its root, a child per hop and one per question to a model,
stamped now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.asked_spans import chat_spans
from memtrace_collector.attribution.writeback import identity, sizes, spans
from memtrace_collector.attribution.writeback.told import Told, span_key
from memtrace_otel import semconv

_HOP_NS = 1_000_000


def case_trace(told: Told) -> bytes:
    """An OTLP export request with every span of the case trace."""
    root = told.root
    hops = [_hop(told, number, hop) for number, hop in enumerate(told.verdict["path"])]
    asked = chat_spans(
        told.verdict, root.trace_id, root.span_id, told.now_ns, quotes=told.target.quotes
    )
    return spans.trace_request(spans.SERVICE, [_root(told, len(hops)), *hops, *asked])


def _root(told: Told, hops: int) -> Span:
    links = [spans.link(told.answer.key)]
    if told.revision > 1:
        links.append(spans.link(told.root_of(told.revision - 1)))
    where = {
        semconv.MEMTRACE_ANSWER_TRACE_ID: told.answer.trace_id,
        semconv.MEMTRACE_ANSWER_SPAN_ID: told.answer.span_id,
    }
    return Span(
        trace_id=bytes.fromhex(told.root.trace_id),
        span_id=bytes.fromhex(told.root.span_id),
        name=semconv.SPAN_CASE,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=told.now_ns,
        end_time_unix_nano=told.now_ns + max(1, hops) * _HOP_NS,
        attributes=sizes.attributes({**told.finding(), **where, **told.cause()}),
        links=links,
    )


def _hop(told: Told, number: int, hop: Mapping[str, Any]) -> Span:
    start = told.now_ns + number * _HOP_NS
    is_at_fault = told.is_fault and hop["decisive"]
    return Span(
        trace_id=bytes.fromhex(told.root.trace_id),
        span_id=bytes.fromhex(identity.hop_span_id(told.case_id, told.revision, number)),
        parent_span_id=bytes.fromhex(told.root.span_id),
        name=semconv.SPAN_HOP,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=start,
        end_time_unix_nano=start + _HOP_NS,
        attributes=sizes.attributes(
            {
                semconv.MEMTRACE_HOP_KIND: hop["kind"],
                semconv.MEMTRACE_HOP_OUTCOME: hop["outcome"],
                semconv.MEMTRACE_HOP_SERVICE: hop["service"],
                semconv.MEMTRACE_HOP_OPERATION: hop["operation"],
                semconv.MEMTRACE_HOP_TIME: spans.rfc3339(hop["time_ns"]),
                semconv.MEMTRACE_HOP_RECORD: hop["record"],
                semconv.MEMTRACE_HOP_VERSIONS: hop["versions"],
            }
        ),
        links=[spans.link(span_key(hop["span"]))] if hop["span"] else [],
        status=spans.status(is_at_fault, told.explanation if is_at_fault else hop["says"]),
    )
