"""``gen_ai.evaluation.result``, as a span event or a log record: failed evaluations are flags.

Pure. Our own evaluations (named ``memtrace.attribution…``) never flag anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from memtrace_collector.dialects import attributes as attr
from memtrace_collector.dialects.attributes import Attributes, Source, SpanAttributes
from memtrace_collector.graph.facts import Flag, SpanFacts
from memtrace_collector.otlp.slices import SpanView
from memtrace_otel import semconv

MARKERS = (b"gen_ai.evaluation.",)
FAILURE_LABELS = frozenset(
    (
        "fail",
        "failed",
        "failure",
        "incorrect",
        "wrong",
        "bad",
        "false",
        "no",
        "negative",
        "poor",
        "hallucinated",
        "hallucination",
        "unfaithful",
        "thumbs_down",
        "thumbs-down",
        "thumbs down",
        "rejected",
        "not_ok",
    )
)
"""The closed list: another label flags nothing, whatever it says."""
_OWN_PREFIX = "memtrace."
_EVALUATOR = "evaluator"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Per evaluation name: a score below ``minimum`` or above ``maximum`` has failed."""

    minimum: Mapping[str, float] = field(default_factory=dict)
    maximum: Mapping[str, float] = field(default_factory=dict)

    def failed(self, name: str, score: float) -> bool:
        low, high = self.minimum.get(name), self.maximum.get(name)
        return (low is not None and score < low) or (high is not None and score > high)


NO_THRESHOLDS = Thresholds()


def event_flags(
    span: SpanView, source: Source, thresholds: Thresholds = NO_THRESHOLDS
) -> tuple[Flag, ...]:
    """Flags from the evaluation events on a span: they speak of that span."""
    flags = []
    for number, event in enumerate(span.events):
        if event.name != semconv.GEN_AI_EVALUATION_RESULT:
            continue
        result = SpanAttributes(event.attributes).decoded()
        if is_failure(result, thresholds):
            trace_id, span_id = span.trace_id.hex(), span.span_id.hex()
            flags.append(
                _flag(
                    result,
                    source,
                    trace_id=trace_id,
                    span_id=span_id,
                    graph_id=SpanAttributes(span.attributes).text(semconv.MEMTRACE_GRAPH_ID),
                    at_ns=attr.nanoseconds(event.time_unix_nano),
                    origin=f"{trace_id}:{span_id}:event:{number}",
                )
            )
    return tuple(flags)


def read_log(
    record: LogRecord, source: Source, thresholds: Thresholds = NO_THRESHOLDS
) -> SpanFacts | None:
    """The flag that a log record raises; None when it raises none."""
    result = attr.decode(record.attributes)
    name = record.event_name or attr.text(result, "event.name")
    if name != semconv.GEN_AI_EVALUATION_RESULT or not is_failure(result, thresholds):
        return None
    trace_id = record.trace_id.hex()
    if not (
        trace_id
        or attr.text(result, semconv.GEN_AI_RESPONSE_ID)
        or attr.text(result, semconv.GEN_AI_CONVERSATION_ID)
    ):
        return SpanFacts(tenant=source.tenant, problems=("evaluation without a target",))
    at_ns = attr.nanoseconds(record.time_unix_nano or record.observed_time_unix_nano)
    flag = _flag(
        result,
        source,
        trace_id=trace_id,
        span_id=record.span_id.hex(),
        graph_id=attr.text(result, semconv.MEMTRACE_GRAPH_ID),
        at_ns=at_ns,
        origin=f"log:{attr.message_digest(record)}",
    )
    return SpanFacts(tenant=source.tenant, flags=(flag,))


def is_failure(result: Attributes, thresholds: Thresholds = NO_THRESHOLDS) -> bool:
    """Does this evaluation say that the answer is wrong?"""
    name = attr.text(result, semconv.GEN_AI_EVALUATION_NAME)
    if name.startswith(_OWN_PREFIX):
        return False
    label = attr.text(result, semconv.GEN_AI_EVALUATION_SCORE_LABEL).strip().lower()
    if label in FAILURE_LABELS:
        return True
    score = result.get(semconv.GEN_AI_EVALUATION_SCORE_VALUE)
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return False
    return thresholds.failed(name, score)


def _flag(
    result: Attributes,
    source: Source,
    *,
    trace_id: str,
    span_id: str,
    graph_id: str,
    at_ns: int,
    origin: str,
) -> Flag:
    return Flag(
        tenant=source.tenant,
        graph_id=graph_id,
        trace_id=trace_id,
        span_id=span_id,
        response_id=attr.text(result, semconv.GEN_AI_RESPONSE_ID),
        conversation_id=attr.text(result, semconv.GEN_AI_CONVERSATION_ID),
        expected=attr.optional_text(result, semconv.MEMTRACE_EXPECTED),
        evidence=attr.texts(result, semconv.MEMTRACE_EVIDENCE),
        reason=attr.text(result, semconv.GEN_AI_EVALUATION_EXPLANATION),
        source=attr.text(result, semconv.MEMTRACE_FLAG_SOURCE) or _EVALUATOR,
        at_ns=at_ns,
        origin=origin,
    )
