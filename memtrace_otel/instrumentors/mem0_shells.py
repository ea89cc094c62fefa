"""How a call of mem0 comes under observation: a shell for ``def``, a shell for ``async def``.

A shell opens an :class:`Observation` before the library's call and closes it after; what happens
in between, the library alone decides. Observations nest through one context variable: a call
of an inner method or of one of the memory's parts (model, vector store, reranker, history) is
offered to the innermost open observation of this memory, which may open one of its own.

mem0 runs inner methods in thread pools, where context variables are lost. ``Memory`` looks
such a method up in the caller's thread, though: :class:`InCallersContext` takes the context
there.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from memtrace_otel.guard import guard, guarded

Arguments = Mapping[str, Any]
"""Bound arguments of a call by name, defaults filled in, without ``self``."""


class Observation:
    """One call of the library under observation; by itself it only looks away.

    While it is open, seams reached by the call are offered to it: the ``on_`` methods return
    an observation for the inner call, or ``None`` to let it pass unseen.
    """

    def __init__(self, memory: object) -> None:
        self.memory = memory
        self._token: contextvars.Token[Observation | None] | None = _innermost.set(self)

    def begin(self) -> None:
        """Take down what is known before the call. The observation is open already."""

    def returned(self, result: object) -> None:
        """The call came back with ``result``."""
        try:
            self._finish(result)
        finally:
            self._leave(None)

    def failed(self, error: BaseException) -> None:
        """The call raised ``error``, which goes on to the caller."""
        try:
            self._abandon(error)
        finally:
            self._leave(error)

    def _finish(self, result: object, /) -> None:
        """Take down what the result says."""

    def _abandon(self, error: BaseException, /) -> None:
        """Take down what was left open."""

    def _leave(self, _error: BaseException | None, /) -> None:
        token, self._token = self._token, None
        if token is not None:
            _innermost.reset(token)

    def on_pipeline(self, arguments: Arguments, /) -> Observation | None:
        """``_add_to_vector_store``."""

    def on_create(self, arguments: Arguments, /) -> Observation | None:
        """``_create_memory``."""

    def on_change(self, arguments: Arguments, /) -> Observation | None:
        """``_update_memory``."""

    def on_remove(self, arguments: Arguments, /) -> Observation | None:
        """``_delete_memory``."""

    def on_model(self, arguments: Arguments, /) -> Observation | None:
        """``llm.generate_response``."""

    def on_search(self, arguments: Arguments, /) -> Observation | None:
        """``vector_store.search``."""

    def on_get(self, arguments: Arguments, /) -> Observation | None:
        """``vector_store.get``."""

    def on_insert(self, arguments: Arguments, /) -> Observation | None:
        """``vector_store.insert``."""

    def on_update(self, arguments: Arguments, /) -> Observation | None:
        """``vector_store.update``."""

    def on_delete(self, arguments: Arguments, /) -> Observation | None:
        """``vector_store.delete``."""

    def on_rerank(self, arguments: Arguments, /) -> Observation | None:
        """``reranker.rerank``."""

    def on_last_messages(self, arguments: Arguments, /) -> Observation | None:
        """``db.get_last_messages`` (2.x)."""


class Peek(Observation):
    """Tells somebody else what a call returned."""

    def __init__(self, memory: object, tell: Callable[[Any], None]) -> None:
        super().__init__(memory)
        self._tell = tell

    def _finish(self, result: object, /) -> None:
        self._tell(result)


_innermost: contextvars.ContextVar[Observation | None] = contextvars.ContextVar(
    "memtrace_otel_mem0", default=None
)

Opener = Callable[[Any, Arguments], "Observation | None"]
"""Given the instance and the arguments of a call: its observation, if it has one."""


def offered(seam: str, part: str = "") -> Opener:
    """An opener that offers the call to the innermost observation of the same memory.

    Args:
        seam: name of the ``on_`` method, without that prefix.
        part: the memory's attribute whose object is called; empty: the memory itself.
    """
    method = f"on_{seam}"

    def opener(instance: object, arguments: Arguments) -> Observation | None:
        observation = _innermost.get()
        if observation is None:
            return None
        own = getattr(observation.memory, part, None) if part else observation.memory
        if own is not instance:
            return None
        opened: Observation | None = getattr(observation, method)(arguments)
        return opened

    return opener


def is_observed() -> bool:
    """Whether an observation is open in this context."""
    return _innermost.get() is not None


def sync_shell(opener: Opener) -> Callable[..., Any]:
    """A wrapt wrapper around a plain function."""

    def shell(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        observation = _open(opener, wrapped, instance, args, kwargs)
        if observation is None:
            return wrapped(*args, **kwargs)
        try:
            result = wrapped(*args, **kwargs)
        except BaseException as error:
            _failed(observation, error)
            raise
        _returned(observation, result)
        return result

    return shell


def async_shell(opener: Opener) -> Callable[..., Any]:
    """A wrapt wrapper around a coroutine function."""

    async def shell(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        observation = _open(opener, wrapped, instance, args, kwargs)
        if observation is None:
            return await wrapped(*args, **kwargs)
        try:
            result = await wrapped(*args, **kwargs)
        except BaseException as error:
            _failed(observation, error)
            raise
        _returned(observation, result)
        return result

    return shell


class InCallersContext:
    """A method that runs in the context in which it was looked up, if it is called without one."""

    def __init__(self, method: Any) -> None:
        functools.update_wrapper(self, method)
        self._method = method

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        bound = self._method.__get__(instance, owner)
        if instance is None or not is_observed():
            return bound
        return functools.partial(_call_within, contextvars.copy_context(), bound)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._method(*args, **kwargs)


def _call_within(context: contextvars.Context, method: Any, *args: Any, **kwargs: Any) -> Any:
    if is_observed():
        return method(*args, **kwargs)
    return context.copy().run(method, *args, **kwargs)


@guarded
def _open(
    opener: Opener, wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Observation | None:
    function = getattr(wrapped, "__func__", wrapped)
    try:
        bound = _signature(function).bind(instance, *args, **kwargs)
    except TypeError:
        return None  # a wrong call: the library's own error is the answer
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    arguments.update(arguments.pop("kwargs", None) or {})
    observation = opener(instance, arguments)
    if observation is not None:
        with guard("mem0"):  # what was opened must be closed, whatever goes wrong here
            observation.begin()
    return observation


@guarded
def _returned(observation: Observation, result: object) -> None:
    observation.returned(result)


@guarded
def _failed(observation: Observation, error: BaseException) -> None:
    observation.failed(error)


@functools.lru_cache(maxsize=256)
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)
