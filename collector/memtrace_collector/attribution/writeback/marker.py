"""In each decisive operation's trace a sign that it broke an answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.writeback import identity, sizes, spans
from memtrace_collector.attribution.writeback.told import Told
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv


def markers(told: Told) -> list[tuple[str, bytes]]:
    """OTLP export requests, each with its name.

    One per operation and type, whichever case comes first. The answer itself needs none: the
    verdict already stands below it.
    """
    if not told.is_fault:
        return []
    entries = {(each["traceId"], each["spanId"]): each for each in told.verdict["decisive"]}
    return [
        _marker(told, op, entries[op.trace_id, op.span_id])
        for op in told.decisive
        if op.key != told.answer.key
    ]


def _marker(told: Told, op: Operation, entry: Mapping[str, Any]) -> tuple[str, bytes]:
    name = f"{op.trace_id}:{op.span_id}/{entry['error_type']}"
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
                semconv.MEMTRACE_ATTRIBUTION_STAGE: entry["stage"],
                semconv.MEMTRACE_ATTRIBUTION_TYPE: entry["error_type"],
                semconv.MEMTRACE_ANSWER_TRACE_ID: told.answer.trace_id,
                semconv.MEMTRACE_ANSWER_SPAN_ID: told.answer.span_id,
            }
        ),
        links=[spans.link(told.root), spans.link(told.answer.key)],
        status=spans.status(True, ""),
    )
    return name, spans.trace_request(op.service or spans.SERVICE, [span])
