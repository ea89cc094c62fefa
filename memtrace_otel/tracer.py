"""The public verbs: operations as context manager, as decorator or by hand, and their graph."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Token
from types import TracebackType
from typing import Any, TypeVar, cast

from opentelemetry import context as context_api
from opentelemetry.context import Context
from opentelemetry.trace import Span
from opentelemetry.util.types import AttributeValue

from memtrace_otel import runtime, scope, starting
from memtrace_otel.guard import guarded
from memtrace_otel.operations import NOT_RECORDING, MemoryOperation
from memtrace_otel.starting import Request

F = TypeVar("F", bound=Callable[..., Any])


class OperationScope:
    """One operation around a block (``with``, ``async with``) or around each call (decorator).

    A decorated generator's operation starts with its first item and ends when the generator is
    exhausted, closed or fails; between items the caller's context is the caller's own.
    """

    __slots__ = ("_operation", "_request", "_token")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._operation = NOT_RECORDING
        self._token: Token[Context] | None = None

    def __enter__(self) -> MemoryOperation:
        started = starting.start(self._request)
        self._operation = started.operation
        if started.context is not None:
            self._token = context_api.attach(started.context)
        return started.operation

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _finish(self._operation, error)
        if self._token is not None:
            context_api.detach(self._token)
            self._token = None

    async def __aenter__(self) -> MemoryOperation:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: F) -> F:
        return cast(F, _decorate(function, self._request))


def _finish(operation: MemoryOperation, error: BaseException | None) -> None:
    """Closing a generator is a normal end; anything else that leaves the block is a failure."""
    if error is None or isinstance(error, GeneratorExit):
        operation.stop()
    else:
        operation.fail(error)


def _decorate(function: Callable[..., Any], request: Request) -> Callable[..., Any]:
    wrapper: Callable[..., Any]
    if inspect.isasyncgenfunction(function):

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return _drive_async(request, function(*args, **kwargs))

    elif inspect.isgeneratorfunction(function):

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return _drive(request, function(*args, **kwargs))

    elif inspect.iscoroutinefunction(function):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            with OperationScope(request):
                return await function(*args, **kwargs)

    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with OperationScope(request):
                return function(*args, **kwargs)

    return functools.wraps(function)(wrapper)


@contextmanager
def _inside(context: Context | None) -> Iterator[None]:
    """Run one step in ``context``, and leave the caller's context as it was."""
    if context is None:
        yield
        return
    token = context_api.attach(context)
    try:
        yield
    finally:
        context_api.detach(token)


def _drive(request: Request, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """PEP 380's ``yield from generator``, each step inside the operation's context."""
    operation, context = starting.start(request)
    step: Callable[[], Any] = functools.partial(next, generator)
    try:
        while True:
            with _inside(context):
                try:
                    item = step()
                except StopIteration as end:
                    return end.value
            try:
                received = yield item
            except GeneratorExit:
                with _inside(context):
                    generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)
            else:
                step = functools.partial(generator.send, received)
    except BaseException as error:
        _finish(operation, error)
        raise
    finally:
        operation.stop()


async def _drive_async(
    request: Request, generator: AsyncGenerator[Any, Any]
) -> AsyncGenerator[Any, Any]:
    """The same for asynchronous generators."""
    operation, context = starting.start(request)
    step: Callable[[], Any] = generator.__anext__
    try:
        while True:
            with _inside(context):
                try:
                    item = await step()
                except StopAsyncIteration:
                    return
            try:
                received = yield item
            except GeneratorExit:
                with _inside(context):
                    await generator.aclose()
                raise
            except BaseException as error:
                step = functools.partial(generator.athrow, error)
            else:
                step = functools.partial(generator.asend, received)
    except BaseException as error:
        _finish(operation, error)
        raise
    finally:
        operation.stop()


def operation(  # noqa: PLR0913  # keyword arguments of the public API
    step: str,
    *,
    system: str = "",
    system_version: str = "",
    graph_id: str | None = None,
    conversation_id: str | None = None,
    name: str | None = None,
    capture: str | None = None,
    composite: bool = False,
    attributes: Mapping[str, AttributeValue] | None = None,
    context: Context | None = None,
    library_graph_id: str | None = None,
) -> OperationScope:
    """A memory operation around a block or a function.

    ``with operation("update", system="notes") as op:``, ``async with``, or as a decorator of a
    function, coroutine function, generator or asynchronous generator; inside a decorated
    function ``current_operation()`` gives the operation.

    Args:
        step: what kind of operation, see DESIGN section 3.2.
        system: the memory system, as ``mem0``.
        system_version: its version.
        graph_id: whose memory this is; default: the enclosing ``graph()`` or operation, else
            ``library_graph_id``, else derived from user, conversation or service.
        conversation_id: default: the enclosing one.
        name: span name, when the step's own does not fit.
        capture: observed, declared or inferred; default: the enclosing operation's, else
            declared.
        composite: the stages of this operation are operations of their own inside it.
        attributes: further span attributes, present from the start.
        context: parent OpenTelemetry context; default: the current one.
        library_graph_id: for instrumentations: the graph by the library's own scope (see
            ``owner_graph_id``); an enclosing ``graph()`` goes before it.
    """
    return OperationScope(
        Request(
            step,
            system,
            system_version,
            graph_id,
            conversation_id,
            name,
            capture,
            composite,
            attributes,
            context,
            library_graph_id,
        )
    )


def start_operation(  # noqa: PLR0913  # keyword arguments of the public API
    step: str,
    *,
    system: str = "",
    system_version: str = "",
    graph_id: str | None = None,
    conversation_id: str | None = None,
    name: str | None = None,
    capture: str | None = None,
    composite: bool = False,
    attributes: Mapping[str, AttributeValue] | None = None,
    context: Context | None = None,
    library_graph_id: str | None = None,
) -> MemoryOperation:
    """An operation that the caller ends with ``stop()`` or ``fail(exception)``.

    It does not become the current one: what starts meanwhile is not its child, unless its
    span is put into a context by hand. Arguments as for :func:`operation`.
    """
    request = Request(
        step,
        system,
        system_version,
        graph_id,
        conversation_id,
        name,
        capture,
        composite,
        attributes,
        context,
        library_graph_id,
    )
    return starting.start(request).operation


def adopt_operation(  # noqa: PLR0913  # keyword arguments of the public API
    span: Span,
    step: str,
    *,
    system: str = "",
    system_version: str = "",
    graph_id: str | None = None,
    conversation_id: str | None = None,
    capture: str | None = None,
    composite: bool = False,
    attributes: Mapping[str, AttributeValue] | None = None,
    context: Context | None = None,
    library_graph_id: str | None = None,
) -> MemoryOperation:
    """An operation on a span that another instrumentation made and will end.

    ``stop()`` writes the attributes and leaves the span open; when its owner has ended it
    before, they go onto a child span instead. Arguments as for :func:`operation`.
    """
    request = Request(
        step,
        system,
        system_version,
        graph_id,
        conversation_id,
        None,
        capture,
        composite,
        attributes,
        context,
        library_graph_id,
    )
    return (starting.adopt(request, span) or starting.IDLE).operation


def current_operation() -> MemoryOperation | None:
    """The innermost operation that is open in this context, if any."""
    found = scope.current().operation
    return found if found is not None and found.is_recording else None


@contextmanager
def graph(graph_id: str, *, conversation_id: str | None = None) -> Iterator[None]:
    """All operations inside belong to this graph (and conversation).

    Goes through OpenTelemetry's context, so into tasks and wherever it is propagated; into
    other processes only under MEMTRACE_BAGGAGE=true.
    """
    context = _graph_context(graph_id, conversation_id)
    with _inside(context):
        yield


@guarded
def _graph_context(graph_id: str, conversation_id: str | None) -> Context:
    return scope.with_graph(runtime.get(), str(graph_id), conversation_id)


def owner_graph_id(kind: str, identifier: object) -> str:
    """The graph id of a library's scope: ``user``, ``agent`` or ``run`` and its id.

    For ``library_graph_id``. The id is digested like content, unless the key is ``plain``.
    """
    return _owner_graph_id(kind, identifier) or ""


@guarded
def _owner_graph_id(kind: str, identifier: object) -> str:
    return scope.owner_graph_id(runtime.get().digests, kind, str(identifier))
