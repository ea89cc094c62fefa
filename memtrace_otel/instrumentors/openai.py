"""Instrumentation of the ``openai`` package: answers, and the lineage of their prompts.

Covers chat completions and responses, synchronous and asynchronous, whole and streamed, with
raw and with streaming responses, and every client that talks to a compatible API through this
package. The classes below are the innermost through which every request goes, so the current
span there is the one that another instrumentation made for it, whichever was installed first:

* ``request`` of the base clients: the beginning, and any error;
* ``_process_response``: a whole response. A wrapper of ``OpenAI.request`` that was installed
  earlier calls past the first hook; the call then begins here, without errors before it;
* ``Stream.__init__`` and ``AsyncStream.__init__``: a stream, whoever makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import openai
import wrapt
from openai import _base_client, _streaming
from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]  # the whole module says "type: ignore"
    BaseInstrumentor,
)

from memtrace_otel import runtime
from memtrace_otel.guard import guarded
from memtrace_otel.instrumentors import openai_call, openai_prompt, openai_stream
from memtrace_otel.instrumentors.openai_call import Call, Endpoint

_EXTENSION = "memtrace_otel.call"
"""Under this name a response carries its call to the stream that will be made of it."""

_current: ContextVar[Call | None] = ContextVar("memtrace_otel_openai_call", default=None)


class OpenAIInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # untyped base
    """Entry point ``memtrace_openai``; ``tracer_provider`` may be given to ``instrument()``."""

    def instrumentation_dependencies(self) -> Collection[str]:
        return ("openai >= 1.26.0, < 4",)

    def _instrument(self, **kwargs: Any) -> None:
        if kwargs.get("tracer_provider") is not None:
            runtime.configure(tracer_provider=kwargs["tracer_provider"])
        _hooks.install()

    def _uninstrument(self, **kwargs: Any) -> None:  # noqa: ARG002  # the base class's signature
        _hooks.remove()


def _request(wrapped: Any, client: Any, args: Any, kwargs: Any) -> Any:
    call = _begin(client, _options(args, kwargs))
    if call is None:
        return wrapped(*args, **kwargs)
    with _running(call):
        return wrapped(*args, **kwargs)


async def _request_async(wrapped: Any, client: Any, args: Any, kwargs: Any) -> Any:
    call = _begin(client, _options(args, kwargs))
    if call is None:
        return await wrapped(*args, **kwargs)
    with _running(call):
        return await wrapped(*args, **kwargs)


def _process(wrapped: Any, client: Any, args: Any, kwargs: Any) -> Any:
    call = _attach(client, kwargs)
    result = wrapped(*args, **kwargs)
    _processed(call, kwargs, is_async=False)
    return result


async def _process_async(wrapped: Any, client: Any, args: Any, kwargs: Any) -> Any:
    call = _attach(client, kwargs)
    result = await wrapped(*args, **kwargs)
    _processed(call, kwargs, is_async=True)
    return result


def _make_stream(wrapped: Any, stream: Any, args: Any, kwargs: Any) -> None:
    wrapped(*args, **kwargs)
    _watch(stream)


@contextmanager
def _running(call: Call) -> Iterator[None]:
    token = _current.set(call)
    try:
        with call.active():
            yield
    except BaseException as error:
        call.fail(error)
        raise
    finally:
        _current.reset(token)


@guarded
def _begin(client: Any, options: Any) -> Call | None:
    path = _path(options)
    if not path:
        return None
    azure = "azure" in type(client).__name__.lower()
    endpoint = Endpoint(path, "azure.ai.openai" if azure else "openai", openai.__version__)
    return openai_call.begin(endpoint, options.json_data)


@guarded
def _attach(client: Any, arguments: Mapping[str, Any]) -> Call | None:
    """The call of this response, carried by it for a stream that is made of it later."""
    options, response = arguments.get("options"), arguments.get("response")
    if not _path(options) or response is None:
        return None
    call = _current.get() or _begin(client, options)
    if call is not None:
        response.extensions[_EXTENSION] = call
    return call


@guarded
def _processed(call: Call | None, arguments: Mapping[str, Any], *, is_async: bool) -> None:
    if call is None:
        return
    response = arguments["response"]
    if arguments.get("stream"):
        call.watch()
    elif response.is_closed:
        response.extensions.pop(_EXTENSION, None)
        call.respond(openai_stream.body_of(response))
    else:
        openai_stream.watch_body(response, call, is_async=is_async)


@guarded
def _watch(stream: Any) -> None:
    call = stream.response.extensions.pop(_EXTENSION, None)
    if isinstance(call, Call):
        openai_stream.watch_stream(stream, call)


def _path(options: Any) -> str:
    """The URL path of a request for an answer; empty for any other request."""
    if str(getattr(options, "method", "")).lower() != "post":
        return ""
    path = str(options.url).partition("?")[0]
    return path if openai_prompt.is_answerable(path) else ""


def _options(args: Any, kwargs: Mapping[str, Any]) -> Any:
    """``request(cast_to, options, …)``"""
    return kwargs.get("options", args[1] if len(args) > 1 else None)


class _Hooks:
    """The replaced methods, to be put back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[type, str, Any, Any]] = []

    def install(self) -> None:
        """Replace each method, once."""
        if self._replaced:
            return
        sync, asynchronous = _base_client.SyncAPIClient, _base_client.AsyncAPIClient
        self._replace(sync, "request", _request)
        self._replace(asynchronous, "request", _request_async)
        self._replace(sync, "_process_response", _process)
        self._replace(asynchronous, "_process_response", _process_async)
        self._replace(_streaming.Stream, "__init__", _make_stream)
        self._replace(_streaming.AsyncStream, "__init__", _make_stream)

    def remove(self) -> None:
        """Put each method back, unless somebody wrapped it again: ours then stays inside."""
        for owner, name, original, ours in self._replaced:
            if owner.__dict__.get(name) is ours:
                setattr(owner, name, original)
        self._replaced.clear()

    def _replace(self, owner: type, name: str, wrapper: Callable[..., Any]) -> None:
        original = owner.__dict__[name]
        ours = wrapt.FunctionWrapper(original, wrapper, enabled=self._is_installed)
        setattr(owner, name, ours)
        self._replaced.append((owner, name, original, ours))

    def _is_installed(self) -> bool:
        return bool(self._replaced)


_hooks = _Hooks()
