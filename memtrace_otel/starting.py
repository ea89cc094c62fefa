"""Starting an operation: its graph, its span, its number in the process's sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from opentelemetry import context as context_api
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind
from opentelemetry.util.types import AttributeValue

from memtrace_otel import farewell, runtime, scope, semconv
from memtrace_otel.guard import guarded
from memtrace_otel.operations import NOT_RECORDING, MemoryOperation
from memtrace_otel.recording import Begin, Record
from memtrace_otel.runtime import Runtime
from memtrace_otel.scope import Scope


class Request(NamedTuple):
    """What the caller asked for; the arguments of ``operation``."""

    step: str
    system: str = ""
    system_version: str = ""
    graph_id: str | None = None
    conversation_id: str | None = None
    name: str | None = None
    capture: str | None = None
    composite: bool = False
    attributes: Mapping[str, AttributeValue] | None = None
    context: Context | None = None
    library_graph_id: str | None = None


class Started(NamedTuple):
    """An operation and the context in which its work runs (``None``: the current one)."""

    operation: MemoryOperation
    context: Context | None


IDLE = Started(NOT_RECORDING, None)


def start(request: Request) -> Started:
    """Start an operation on a span of its own. Never raises."""
    state = runtime.get()
    provider = state.provider()
    if provider is None:
        return IDLE
    return _start(request, state, provider) or IDLE


@guarded
def _start(request: Request, state: Runtime, provider: trace.TracerProvider) -> Started:
    context = context_api.get_current() if request.context is None else request.context
    parent = trace.get_current_span(context).get_span_context()
    enclosing = scope.current(context)
    graph_id, conversation = _identity(request, state, enclosing, context)
    attributes = _initial_attributes(request, enclosing, graph_id, conversation)
    clock = state.clock
    span = state.tracer(provider).start_span(
        request.name or semconv.SPAN_NAMES.get(request.step, f"memtrace.{request.step}"),
        context=context,
        kind=SpanKind.CLIENT if request.step == semconv.STEP_ANSWER else SpanKind.INTERNAL,
        attributes=attributes,
        start_time=clock() if clock else None,
    )
    own = span.get_span_context()
    if not own.is_valid or own.span_id == parent.span_id:
        return IDLE  # a provider that makes no spans of its own
    farewell.expect(provider)
    sequence = state.sequence.next()
    if not span.is_recording():
        return Started(NOT_RECORDING, trace.set_span_in_context(span, context))
    begin = Begin(
        step=request.step,
        graph_id=graph_id,
        conversation_id=conversation,
        capture=str(attributes[semconv.MEMTRACE_CAPTURE]),
        attributes=attributes,
        sequence=sequence,
        parent_span_id=parent.span_id,
        adopted=False,
    )
    return _open(request, state, span, begin, enclosing, context)


@guarded
def adopt(request: Request, span: Span) -> Started:
    """Start an operation on a span that somebody else made and will end."""
    state = runtime.get()
    provider = state.provider()
    if provider is None or not (span.get_span_context().is_valid and span.is_recording()):
        return IDLE
    context = context_api.get_current() if request.context is None else request.context
    enclosing = scope.current(context)
    graph_id, conversation = _identity(request, state, enclosing, context)
    attributes = _initial_attributes(request, enclosing, graph_id, conversation)
    attributes.pop(semconv.GEN_AI_OPERATION_NAME, None)  # the span's owner knows better
    parent = getattr(span, "parent", None)
    farewell.expect(provider)
    begin = Begin(
        step=request.step,
        graph_id=graph_id,
        conversation_id=conversation,
        capture=str(attributes[semconv.MEMTRACE_CAPTURE]),
        attributes=attributes,
        sequence=state.sequence.next(),
        parent_span_id=parent.span_id if parent else 0,
        adopted=True,
    )
    return _open(request, state, span, begin, enclosing, context)


def _open(
    request: Request,
    state: Runtime,
    span: Span,
    begin: Begin,
    enclosing: Scope,
    context: Context,
) -> Started:
    record = Record(state, span, begin)
    if request.composite or request.step == semconv.STEP_ADD:
        record.fields[semconv.COMPOSITE] = True
    operation = MemoryOperation(span, record)
    inner = Scope(begin.graph_id, begin.conversation_id, enclosing.declared, operation)
    return Started(operation, scope.with_scope(inner, trace.set_span_in_context(span, context)))


def _identity(
    request: Request, state: Runtime, enclosing: Scope, context: Context
) -> tuple[str, str]:
    """The operation's graph and conversation. A flag without a graph is left without."""
    conversation = request.conversation_id or scope.conversation_of(state, enclosing, context)
    if request.graph_id:
        return str(request.graph_id), conversation
    if request.step == semconv.STEP_FLAG:
        return scope.declared_graph(state, enclosing, context), conversation
    graph_id = scope.graph_of(state, enclosing, context, request.library_graph_id, conversation)
    return graph_id, conversation


def _initial_attributes(
    request: Request, enclosing: Scope, graph_id: str, conversation: str
) -> dict[str, AttributeValue]:
    """What the span has from the start: samplers decide by it."""
    capture = request.capture
    if capture is None:
        inherited = enclosing.operation.capture if enclosing.operation else ""
        capture = inherited or semconv.CAPTURE_DECLARED
    attributes: dict[str, AttributeValue] = {
        semconv.MEMTRACE_SCHEMA_VERSION: semconv.SCHEMA_VERSION,
        semconv.MEMTRACE_STEP: request.step,
        semconv.MEMTRACE_CAPTURE: capture,
    }
    if graph_id:
        attributes[semconv.MEMTRACE_GRAPH_ID] = graph_id
    if request.system:
        attributes[semconv.MEMTRACE_SYSTEM] = request.system
    if request.system_version:
        attributes[semconv.MEMTRACE_SYSTEM_VERSION] = request.system_version
    if conversation:
        attributes[semconv.GEN_AI_CONVERSATION_ID] = conversation
    name = semconv.OPERATION_NAMES.get(request.step)
    if name:
        attributes[semconv.GEN_AI_OPERATION_NAME] = name
    if request.attributes:
        attributes.update(request.attributes)
    return attributes
