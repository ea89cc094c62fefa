"""Labels of exported cases: what persons said of them, read from their spans. Pure.

The spans are those of :mod:`memtrace_collector.attribution.judging.label`.
"""

from __future__ import annotations

from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.dialects import attributes as attr
from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.graph.questions.shapes import is_span, parse_answer
from memtrace_otel import semconv


class Label(NamedTuple):
    """What a person said of a case."""

    case_id: str
    answer: OperationKey
    error_type: str
    decisive: tuple[OperationKey, ...]
    graph_id: str = ""
    last_right: str | None = None
    first_wrong: str | None = None
    note: str = ""
    by: str = ""


def labels(request: ExportTraceServiceRequest) -> list[Label]:
    """Every label of a request; a span that does not say a whole judgement is none."""
    spans = (
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        if span.name == semconv.SPAN_JUDGEMENT
    )
    read = (_label(attr.decode(span.attributes)) for span in spans)
    return [label for label in read if label is not None]


def _label(told: attr.Attributes) -> Label | None:
    error_type = attr.text(told, semconv.MEMTRACE_ATTRIBUTION_TYPE)
    answer = ":".join(
        attr.text(told, name)
        for name in (semconv.MEMTRACE_ANSWER_TRACE_ID, semconv.MEMTRACE_ANSWER_SPAN_ID)
    )
    decisive = attr.texts(told, semconv.MEMTRACE_JUDGEMENT_DECISIVE)
    if error_type not in STAGE_OF or not all(map(is_span, (answer, *decisive))):
        return None
    return Label(
        case_id=attr.text(told, semconv.MEMTRACE_CASE_ID),
        answer=parse_answer(answer),
        error_type=error_type,
        decisive=tuple(map(parse_answer, decisive)),
        graph_id=attr.text(told, semconv.MEMTRACE_GRAPH_ID),
        last_right=attr.optional_text(told, semconv.MEMTRACE_JUDGEMENT_LAST_RIGHT),
        first_wrong=attr.optional_text(told, semconv.MEMTRACE_JUDGEMENT_FIRST_WRONG),
        note=attr.text(told, semconv.MEMTRACE_JUDGEMENT_NOTE),
        by=attr.text(told, semconv.MEMTRACE_JUDGEMENT_BY),
    )
