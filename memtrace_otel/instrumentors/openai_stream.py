"""Watching a reply that the program reads itself, without changing what it holds.

The stream object stays the library's own; only the iterator inside it is replaced, and the
response's ``close`` on this one response.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

from memtrace_otel.instrumentors.openai_call import Call


class WatchedChunks:
    """An iterator over chunks that shows each of them to the call."""

    __slots__ = ("_call", "_chunks")

    def __init__(self, chunks: Iterator[Any], call: Call) -> None:
        self._chunks = chunks
        self._call = call

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        call = self._call
        call.reading = True
        try:
            chunk = next(self._chunks)
        except StopIteration:
            call.end()
            raise
        except BaseException as error:
            call.fail(error)
            raise
        finally:
            call.reading = False
        call.chunk(chunk)
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunks, name)


class WatchedAsyncChunks:
    """The same for an asynchronous iterator."""

    __slots__ = ("_call", "_chunks")

    def __init__(self, chunks: AsyncIterator[Any], call: Call) -> None:
        self._chunks = chunks
        self._call = call

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        call = self._call
        call.reading = True
        try:
            chunk = await self._chunks.__anext__()
        except StopAsyncIteration:
            call.end()
            raise
        except BaseException as error:
            call.fail(error)
            raise
        finally:
            call.reading = False
        call.chunk(chunk)
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunks, name)


def watch_stream(stream: Any, call: Call) -> None:
    """Watch an ``openai.Stream`` or ``openai.AsyncStream`` from its first chunk to its end."""
    chunks = stream._iterator
    if hasattr(chunks, "__anext__"):
        stream._iterator = WatchedAsyncChunks(chunks, call)
        _watch_aclose(stream.response, call)
    else:
        stream._iterator = WatchedChunks(chunks, call)
        _watch_close(stream.response, call)
    call.watch()


def watch_body(response: Any, call: Call, *, is_async: bool) -> None:
    """Watch a body that is no event stream and that the program reads later, or never."""
    if is_async:
        _watch_aread(response, call)
    else:
        _watch_read(response, call)
    call.watch()


def body_of(response: Any) -> object:
    """The JSON body of a response that was read; ``None`` when it was not, or is no JSON."""
    try:
        return json.loads(response.content)
    except (RuntimeError, ValueError):
        return None


# The replacements below live on the response itself and refer to it weakly: a cycle would keep
# an abandoned response, and its connection, until the garbage collector's next full run.


def _watch_close(response: Any, call: Call) -> None:
    closing, watching = weakref.ref(response), weakref.ref(call)

    def close() -> None:
        _notice_close(watching())
        target = closing()
        if target is not None:
            type(target).close(target)

    response.close = close


def _watch_aclose(response: Any, call: Call) -> None:
    closing, watching = weakref.ref(response), weakref.ref(call)

    async def aclose() -> None:
        _notice_close(watching())
        target = closing()
        if target is not None:
            await type(target).aclose(target)

    response.aclose = aclose


def _notice_close(call: Call | None) -> None:
    if call is not None:
        call.closed()


def _watch_read(response: Any, call: Call) -> None:
    reading, watching = weakref.ref(response), weakref.ref(call)

    def read() -> Any:
        target: Any = reading()
        body = type(target).read(target)
        _notice_body(watching(), target)
        return body

    response.read = read


def _watch_aread(response: Any, call: Call) -> None:
    reading, watching = weakref.ref(response), weakref.ref(call)

    async def aread() -> Any:
        target: Any = reading()
        body = await type(target).aread(target)
        _notice_body(watching(), target)
        return body

    response.aread = aread


def _notice_body(call: Call | None, response: Any) -> None:
    if call is not None:
        call.respond(body_of(response))
