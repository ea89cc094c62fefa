"""What operations inherit: graph, conversation, enclosing operation. Carried by OTel's context.

Across processes only through baggage, and only when the user opted in: baggage comes from
whoever calls, and a graph id is what access goes by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opentelemetry import baggage, trace
from opentelemetry import context as context_api
from opentelemetry.context import Context

from memtrace_otel import semconv
from memtrace_otel.digests import Digests
from memtrace_otel.runtime import Runtime

if TYPE_CHECKING:
    from memtrace_otel.operations import MemoryOperation

_KEY = context_api.create_key("memtrace-scope")


class Scope(NamedTuple):
    """What is in force at one place of the program.

    Attributes:
        graph_id: graph of the innermost ``graph()`` or operation.
        conversation_id: likewise.
        declared: graph of the innermost ``graph()``; it goes before a library's own scope.
        operation: the innermost open operation.
    """

    graph_id: str = ""
    conversation_id: str = ""
    declared: str = ""
    operation: MemoryOperation | None = None


EMPTY = Scope()


def current(context: Context | None = None) -> Scope:
    """The scope of ``context``, by default of the current one."""
    scope = context_api.get_value(_KEY, context)
    return scope if isinstance(scope, Scope) else EMPTY


def with_scope(scope: Scope, context: Context | None = None) -> Context:
    """A context in which ``scope`` is in force."""
    return context_api.set_value(_KEY, scope, context)


def with_graph(runtime: Runtime, graph_id: str, conversation_id: str | None) -> Context:
    """The current context with a declared graph, in baggage too when the user opted in."""
    before = current()
    conversation = before.conversation_id if conversation_id is None else conversation_id
    context = with_scope(Scope(graph_id, conversation, graph_id, before.operation))
    if runtime.config.baggage:
        context = baggage.set_baggage(semconv.BAGGAGE_GRAPH_ID, graph_id, context)
        if conversation:
            context = baggage.set_baggage(semconv.BAGGAGE_CONVERSATION_ID, conversation, context)
    return context


def conversation_of(runtime: Runtime, scope: Scope, context: Context | None) -> str:
    """The conversation in force, from the scope or from baggage."""
    return scope.conversation_id or _from_baggage(runtime, semconv.BAGGAGE_CONVERSATION_ID, context)


def declared_graph(runtime: Runtime, scope: Scope, context: Context | None) -> str:
    """The graph that the program or its caller named; empty when none did."""
    found = scope.graph_id or scope.declared
    return found or _from_baggage(runtime, semconv.BAGGAGE_GRAPH_ID, context)


def graph_of(
    runtime: Runtime,
    scope: Scope,
    context: Context | None,
    library_graph_id: str | None,
    conversation_id: str,
) -> str:
    """The graph of an operation that was given none (DESIGN section 3.2, memtrace.graph.id)."""
    if library_graph_id:
        declared = scope.declared or _from_baggage(runtime, semconv.BAGGAGE_GRAPH_ID, context)
        return declared or library_graph_id
    found = declared_graph(runtime, scope, context)
    if found:
        return found
    user = _user_id(runtime, context)
    if user:
        return owner_graph_id(runtime.digests, "user", user)
    if conversation_id:
        return f"conversation:{conversation_id}"
    return f"service:{runtime.service_name()}"


def owner_graph_id(digests: Digests, kind: str, identifier: str) -> str:
    """``user:<32 hex digits>`` (or agent, run …) under the key; the id itself under ``plain``."""
    name = identifier if digests.key.secret is None else digests.digest(identifier)
    return f"{kind}:{name}"


def _user_id(runtime: Runtime, context: Context | None) -> str:
    attributes = getattr(trace.get_current_span(context), "attributes", None)
    user = attributes.get(semconv.USER_ID) if attributes else None
    return str(user) if user else _from_baggage(runtime, semconv.USER_ID, context)


def _from_baggage(runtime: Runtime, name: str, context: Context | None) -> str:
    if not runtime.config.baggage:
        return ""
    value = baggage.get_baggage(name, context)
    return value if isinstance(value, str) else ""
