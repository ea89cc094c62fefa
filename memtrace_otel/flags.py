"""Flagging an answer that is over, from this process or another one (DESIGN section 3.5)."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, TraceFlags

from memtrace_otel import content, runtime, semconv, starting
from memtrace_otel.guard import guarded, report
from memtrace_otel.operations import VariableLike
from memtrace_otel.starting import Request
from memtrace_otel.variables import Variable


def flag(  # noqa: PLR0913  # keyword arguments of the public API
    *,
    span: Span | SpanContext | None = None,
    trace_id: str | int | None = None,
    span_id: str | int | None = None,
    response_id: str | None = None,
    conversation_id: str | None = None,
    expected: str | None = None,
    evidence: Iterable[VariableLike] = (),
    reason: str = "",
    source: str = "user",
) -> None:
    """Say that an answer was wrong.

    The target is a span, a trace, a response or a conversation; without any, the current span.
    What is not an answer means the latest-ending answer below it.

    Args:
        span: a span or its context.
        trace_id: integer or hex digits; with ``span_id`` it names one span.
        span_id: integer or hex digits.
        response_id: the model provider's id of the response (``gen_ai.response.id``).
        conversation_id: ``gen_ai.conversation.id``.
        expected: what it should have said; empty: it should have declined. Content: sent only
            when content capture is on.
        evidence: references of the messages or records that hold the answer.
        reason: free text. Content, like ``expected``.
        source: user, evaluator, dataset or operator.
    """
    _flag(
        _target(span, trace_id, span_id, bool(response_id or conversation_id)),
        {
            semconv.GEN_AI_RESPONSE_ID: response_id or "",
            semconv.GEN_AI_CONVERSATION_ID: conversation_id or "",
            semconv.MEMTRACE_FLAG_SOURCE: source,
        },
        expected,
        evidence,
        reason,
    )


@guarded
def _target(
    span: Span | SpanContext | None,
    trace_id: str | int | None,
    span_id: str | int | None,
    otherwise_named: bool,
) -> SpanContext | None:
    """The flagged span; one without a span id stands for its trace."""
    if trace_id is not None:
        return SpanContext(
            _integer(trace_id),
            0 if span_id is None else _integer(span_id),
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
    if span is None:
        if otherwise_named:
            return None
        span = trace.get_current_span()
    context = span if isinstance(span, SpanContext) else span.get_span_context()
    return context if context.is_valid else None


def _integer(given: str | int) -> int:
    return given if isinstance(given, int) else int(given, 16)


@guarded
def _flag(
    target: SpanContext | None,
    attributes: dict[str, str],
    expected: str | None,
    evidence: Iterable[VariableLike],
    reason: str,
) -> None:
    named = {name: text for name, text in attributes.items() if text}
    if target is None and len(named) < 2:
        report("flag", "memtrace_otel: flag() was given nothing to flag and no span is current")
        return
    if target is not None:
        named[semconv.MEMTRACE_FLAG_TRACE_ID] = trace.format_trace_id(target.trace_id)
        if target.span_id:
            named[semconv.MEMTRACE_FLAG_SPAN_ID] = trace.format_span_id(target.span_id)
    operation = starting.start(Request(semconv.STEP_FLAG)).operation
    if not operation.is_recording:
        return
    if target is not None and target.is_valid:
        operation.span.add_link(target, {semconv.LINK_RELATION: semconv.RELATION_FLAGS})
    for name, text in {**named, **_content(expected, reason)}.items():
        operation.attribute(name, text)
    references = [ref for item in evidence if (ref := _reference(item))]
    if references:
        operation.attribute(semconv.MEMTRACE_EVIDENCE, references[: semconv.MAX_REFERENCES])
    operation.stop()


def _reference(item: VariableLike) -> str:
    return item.ref if isinstance(item, Variable) else str(item)


def _content(expected: str | None, reason: str) -> dict[str, str]:
    """What capture policy and redaction leave; an empty ``expected`` holds no content."""
    state = runtime.get()
    given = {semconv.MEMTRACE_EXPECTED: expected, semconv.MEMTRACE_FLAG_REASON: reason or None}
    kept = {}
    for name, text in given.items():
        if text is None:
            continue
        if text and not state.config.capture_content:
            report(
                "flag content",
                "memtrace_otel: expected and reason of a flag are content and were left out; "
                "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY to send them",
            )
            continue
        allowed = content.redact(name, text, state.redactor)
        if allowed is not None:
            kept[name] = allowed[: state.config.max_value_chars]
    return kept
