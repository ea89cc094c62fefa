"""The verdict as a span inside the failing trace, below the answer. Pure."""

from __future__ import annotations

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.writeback import identity, sizes, spans
from memtrace_collector.attribution.writeback.told import Told, span_key
from memtrace_collector.graph.facts import OperationKey
from memtrace_otel import semconv


def in_trace(told: Told) -> bytes | None:
    """An OTLP export request with that span; None where late spans are not written."""
    answer = told.answer
    at_ns = told.target.takes.stamp(answer.end_ns, told.now_ns)
    if at_ns is None:
        return None
    span = Span(
        trace_id=bytes.fromhex(answer.trace_id),
        span_id=bytes.fromhex(identity.in_trace_span_id(told.case_id, told.revision)),
        parent_span_id=bytes.fromhex(answer.span_id),
        name=semconv.SPAN_ATTRIBUTION,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=at_ns,
        end_time_unix_nano=at_ns + spans.INSTANT_NS,
        attributes=sizes.attributes(told.attributes()),
        links=[spans.link(key) for key in _leads_to(told)[: semconv.MAX_LINKS]],
        status=spans.status(told.is_fault, told.explanation),
    )
    return spans.trace_request({answer.service or spans.SERVICE: [span]})


def _leads_to(told: Told) -> list[OperationKey]:
    """The case, the verdict that this one supersedes, the decisive operations, then those that
    alone would have been enough."""
    found = [told.root]
    if told.revision > 1:
        older = identity.in_trace_span_id(told.case_id, told.revision - 1)
        found.append(OperationKey(told.answer.trace_id, older))
    causes = [op.key for op in told.decisive] + [span_key(each) for each in told.verdict["also"]]
    return [*found, *(key for key in dict.fromkeys(causes) if key != told.answer.key)]
