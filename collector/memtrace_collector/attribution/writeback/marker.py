"""In each decisive operation's trace a sign that it broke an answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.explain import sentence
from memtrace_collector.attribution.writeback import identity, sizes, spans
from memtrace_collector.attribution.writeback.told import Told, span_key
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv


def markers(told: Told) -> list[tuple[str, bytes]]:
    """OTLP export requests, each with its name.

    One per operation and type, whichever case comes first. The answer itself needs none: the
    verdict already stands below it. An operation that is older than what the destination takes
    gets none.
    """
    takes = told.target.takes
    if not told.is_fault or not takes.marker:
        return []
    found = [(told.operations.get(span_key(each)), each) for each in told.verdict["decisive"]]
    return [
        _marker(told, op, each)
        for op, each in found
        if op is not None and op.key != told.answer.key and takes.takes(told.now_ns - op.end_ns)
    ]


def _marker(told: Told, op: Operation, entry: Mapping[str, Any]) -> tuple[str, bytes]:
    name = f"{op.trace_id}:{op.span_id}/{entry['error_type']}"
    says = f"This broke an answer. {sentence(entry['error_type'], op)}"
    span = Span(
        trace_id=bytes.fromhex(op.trace_id),
        span_id=bytes.fromhex(identity.marker_span_id(name)),
        parent_span_id=bytes.fromhex(op.span_id),
        name=semconv.SPAN_CAUSE,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=op.end_ns,
        end_time_unix_nano=op.end_ns + spans.INSTANT_NS,
        attributes=sizes.attributes(
            {
                semconv.MEMTRACE_ATTRIBUTION_EXPLANATION: says,
                semconv.MEMTRACE_ATTRIBUTION_STAGE: entry["stage"],
                semconv.MEMTRACE_ATTRIBUTION_TYPE: entry["error_type"],
                semconv.MEMTRACE_GRAPH_ID: op.graph_id,
                **told.answer_ids(),
                semconv.MEMTRACE_CASE_ID: told.case_id,
                semconv.MEMTRACE_CASE_TRACE_ID: told.root.trace_id,
            }
        ),
        links=[spans.link(told.root), spans.link(told.answer.key)],
        status=spans.status(True, says),
    )
    return name, spans.trace_request({op.service or spans.SERVICE: [span]})
