"""Spans that another instrumentation made for the request that is being sent."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.trace import Span

from memtrace_otel import semconv

_ANSWERING: Final = frozenset({"chat", "text_completion", "generate_content"})
_OPENINFERENCE_KIND: Final = "openinference.span.kind"
_REQUEST_TYPE: Final = "llm.request.type"
_NO_ANSWER: Final = frozenset({"embedding", "rerank"})
_END: Final = "end"


def adoptable() -> Span | None:
    """The current span, when it stands for a model's answer and carries no operation yet.

    Known by OpenTelemetry's ``gen_ai.operation.name``, OpenInference's span kind, the
    ``llm.`` attributes of OpenLLMetry, or a name that starts with ``chat``.
    """
    span = trace.get_current_span()
    return span if span.is_recording() and is_answer(span) and is_free(span) else None


def is_free(span: Span) -> bool:
    """Whether the span can still take an operation: it is open and has none."""
    return span.is_recording() and semconv.MEMTRACE_STEP not in _attributes(span)


def is_answer(span: Span) -> bool:
    attributes = _attributes(span)
    operation = attributes.get(semconv.GEN_AI_OPERATION_NAME)
    if operation is not None:
        return operation in _ANSWERING
    kind = attributes.get(_OPENINFERENCE_KIND)
    if kind is not None:
        return kind == "LLM"
    if any(name.startswith("llm.") for name in attributes):
        return attributes.get(_REQUEST_TYPE) not in _NO_ANSWER
    name = getattr(span, "name", "")
    return isinstance(name, str) and (name == "chat" or name.startswith(("chat ", "chat/")))


def before_end(span: Span, notice: Callable[[], None]) -> None:
    """Call the bound method ``notice`` when ``span`` is about to end; it is held weakly.

    The API has no such hook, and a stream's span may end where nothing else of the stream is
    seen: when a ``with`` block is left early, its owner ends the span and keeps the stream open.
    """
    end = span.end
    noticed = weakref.WeakMethod(notice)

    def end_after_notice(*args: Any, **kwargs: Any) -> None:
        method = noticed()
        if method is not None:
            method()
        end(*args, **kwargs)

    if hasattr(span, "__dict__"):
        setattr(span, _END, end_after_notice)


def _attributes(span: Span) -> Mapping[str, object]:
    attributes = getattr(span, "attributes", None)
    return attributes if isinstance(attributes, Mapping) else {}
