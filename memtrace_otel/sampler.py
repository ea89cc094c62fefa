"""The sampler that keeps memory spans whatever the fate of their trace.

``OTEL_TRACES_SAMPLER=memtrace`` wraps ``parentbased_traceidratio``; OTEL_TRACES_SAMPLER_ARG is its
ratio, or names another sampler and its ratio: ``parentbased_always_on``, ``traceidratio:0.1``.
Only the SDK loads this module, so only this one (and the test kit) imports the SDK.
"""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    DEFAULT_OFF,
    DEFAULT_ON,
    Decision,
    ParentBasedTraceIdRatio,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    TraceFlags,
    TraceState,
)
from opentelemetry.util.types import Attributes

from memtrace_otel import semconv
from memtrace_otel.guard import logger

_MARKERS = frozenset({semconv.MEMTRACE_SCHEMA_VERSION, semconv.MEMTRACE_STEP})
_MEMORY_OPERATIONS = frozenset(
    {
        "search_memory",
        "create_memory",
        "update_memory",
        "upsert_memory",
        "delete_memory",
    }
)
_STATE_KEY = "memtrace"
_STATE_KEPT = "kept"
_DEFAULT_RATIO = 1.0
_FIXED = {
    "always_on": ALWAYS_ON,
    "always_off": ALWAYS_OFF,
    "parentbased_always_on": DEFAULT_ON,
    "parentbased_always_off": DEFAULT_OFF,
}
_BY_RATIO: dict[str, type[TraceIdRatioBased] | type[ParentBasedTraceIdRatio]] = {
    "traceidratio": TraceIdRatioBased,
    "parentbased_traceidratio": ParentBasedTraceIdRatio,
}


class MemorySampler(Sampler):
    """Records and samples memory spans; every other span is for the wrapped sampler.

    A memory span kept in a trace that was not sampled is marked in the trace state, so that
    the ordinary spans below it are not sampled for its sake.
    """

    def __init__(self, wrapped: Sampler) -> None:
        self._wrapped = wrapped

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        result = self._wrapped.should_sample(
            _as_unsampled(parent_context), trace_id, name, kind, attributes, links, trace_state
        )
        if result.decision is Decision.RECORD_AND_SAMPLE or not is_memory_span(attributes):
            return result
        state = _state_of(parent_context) or TraceState()
        return SamplingResult(
            Decision.RECORD_AND_SAMPLE, attributes, state.update(_STATE_KEY, _STATE_KEPT)
        )

    def get_description(self) -> str:
        return f"MemorySampler{{{self._wrapped.get_description()}}}"


def is_memory_span(attributes: Attributes) -> bool:
    """Whether these initial attributes are a memory operation's."""
    if not attributes:
        return False
    if not _MARKERS.isdisjoint(attributes):
        return True
    return attributes.get(semconv.GEN_AI_OPERATION_NAME) in _MEMORY_OPERATIONS


def _state_of(context: Context | None) -> TraceState | None:
    parent = trace.get_current_span(context).get_span_context()
    return parent.trace_state if parent.is_valid else None


def _as_unsampled(context: Context | None) -> Context | None:
    """``context`` as it would be had its parent not been kept for being a memory span."""
    parent = trace.get_current_span(context).get_span_context()
    if parent.trace_state.get(_STATE_KEY) != _STATE_KEPT:
        return context
    ordinary = SpanContext(
        parent.trace_id,
        parent.span_id,
        parent.is_remote,
        TraceFlags(parent.trace_flags & ~TraceFlags.SAMPLED),
        parent.trace_state,
    )
    return trace.set_span_in_context(NonRecordingSpan(ordinary), context)


def create(argument: str | None) -> Sampler:
    """Entry point ``memtrace`` of group ``opentelemetry_traces_sampler``.

    ``argument``: a ratio, the name of a standard sampler, or ``name:ratio``. What cannot be
    understood is logged and means ratio 1.
    """
    text = (argument or "").strip().lower()
    name, _, ratio = text.partition(":")
    if name in _FIXED:
        return MemorySampler(_FIXED[name])
    if name not in _BY_RATIO:
        name, ratio = "parentbased_traceidratio", text
    return MemorySampler(_BY_RATIO[name](_ratio(ratio)))


def _ratio(text: str) -> float:
    if not text:
        return _DEFAULT_RATIO
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if 0.0 <= ratio <= 1.0:
        return ratio
    logger.warning(
        "OTEL_TRACES_SAMPLER_ARG: %r is neither a ratio from 0 to 1 nor a sampler; using %s",
        text,
        _DEFAULT_RATIO,
    )
    return _DEFAULT_RATIO
