"""OTLP/HTTP as a raw ASGI application: no framework between the socket and the log."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from memtrace_collector.access.authentication import Presented
from memtrace_collector.access.tls import CERTIFICATE_NAMES
from memtrace_collector.log.errors import LogError
from memtrace_collector.log.format import Encoding, Signal
from memtrace_collector.receiver.inflate import Inflater
from memtrace_collector.receiver.ingest import COMMIT_SECONDS, Ingest, unavailable
from memtrace_collector.receiver.refusal import Code, RefusedError, too_large

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CHUNK_SECONDS = 30.0
BODY_SECONDS = 300.0
_CHECK_IN_THREAD_BYTES = 128 << 10
"""Above this, checking a body would hold up the other connections."""

_SIGNALS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_ENCODINGS: dict[str, Encoding] = {"application/x-protobuf": "protobuf", "application/json": "json"}
_MEDIA_TYPES = {encoding: media_type for media_type, encoding in _ENCODINGS.items()}


class _ClientGoneError(Exception):
    """The connection closed before the body was complete: nobody to answer."""


class OtlpHttp:
    """The ASGI application. Routes: ``POST /v1/traces``, ``POST /v1/logs``."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        encoding = _ENCODINGS.get(_media_type(headers))
        try:
            body = await self._export(scope, headers, encoding, receive)
        except _ClientGoneError:
            return
        except Exception as error:
            refusal = self._ingest.refusal(error, "http")
            await _send_refusal(send, refusal, encoding or "json")
        else:
            await _send(send, 200, body, encoding or "json")

    async def _export(
        self, scope: Scope, headers: dict[str, str], encoding: Encoding | None, receive: Receive
    ) -> bytes:
        signal = _route(scope["path"], scope["method"])
        if encoding is None:
            wanted = " or ".join(_ENCODINGS)
            raise RefusedError(Code.INVALID_ARGUMENT, f"send Content-Type {wanted}", 415)
        names = scope.get(CERTIFICATE_NAMES, ())
        tenant = self._ingest.admit(Presented(headers.get("authorization", ""), names))
        async with _Room(self._ingest) as room:
            body = await self._read_body(headers, receive, room)
            submit = functools.partial(self._ingest.submit, tenant, signal, encoding, body)
            in_thread = len(body) > _CHECK_IN_THREAD_BYTES
            submission = await asyncio.to_thread(submit) if in_thread else submit()
            if submission.durable is not None:
                await _until_durable(asyncio.wrap_future(submission.durable))
        return self._ingest.acknowledge(signal, encoding, submission.checked)

    async def _read_body(self, headers: dict[str, str], receive: Receive, room: _Room) -> bytes:
        limit = self._ingest.max_request_bytes
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise too_large(limit)
        inflater = _inflater(headers.get("content-encoding", ""), limit)
        parts: list[bytes] = []
        received = 0
        deadline = asyncio.get_running_loop().time() + BODY_SECONDS
        more = True
        while more:
            message = await _next_message(receive, deadline)
            more = message.get("more_body", False)
            chunk = message.get("body", b"")
            received += len(chunk)
            if received > limit:
                raise too_large(limit)
            part = inflater.feed(chunk) if inflater else chunk
            room.take(len(part))
            parts.append(part)
        if inflater:
            inflater.finish()
        return b"".join(parts)


class _Room:
    """What one request holds of the shared memory, given back when it is over."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self._held = 0

    def take(self, size: int) -> None:
        self._ingest.take_room(size)
        self._held += size

    async def __aenter__(self) -> _Room:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._ingest.give_room(self._held)


def _route(path: str, method: str) -> Signal:
    signal = _SIGNALS.get(path)
    if path == "/v1/metrics":
        raise RefusedError(
            Code.UNIMPLEMENTED, "metrics are not kept here; turn the metrics exporter off"
        )
    if signal is None:
        raise RefusedError(Code.NOT_FOUND, f"no such path; send to {' or '.join(_SIGNALS)}")
    if method != "POST":
        raise RefusedError(Code.INVALID_ARGUMENT, f"use POST, not {method}", 405)
    return signal


def _media_type(headers: dict[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _inflater(content_encoding: str, limit: int) -> Inflater | None:
    coding = content_encoding.strip().lower()
    if coding in ("", "identity"):
        return None
    if coding == "gzip":
        return Inflater(limit)
    raise RefusedError(Code.INVALID_ARGUMENT, f"Content-Encoding {coding[:40]!r}: use gzip", 415)


async def _next_message(receive: Receive, deadline: float) -> MutableMapping[str, Any]:
    left = deadline - asyncio.get_running_loop().time()
    try:
        message = await asyncio.wait_for(receive(), min(CHUNK_SECONDS, left))
    except asyncio.TimeoutError as error:
        raise RefusedError(Code.UNAVAILABLE, "the body comes too slowly") from error
    if message["type"] == "http.disconnect":
        raise _ClientGoneError
    return message


async def _until_durable(durable: asyncio.Future[Any]) -> None:
    try:
        await asyncio.wait_for(durable, COMMIT_SECONDS)
    except (LogError, asyncio.TimeoutError) as error:
        raise unavailable(error) from error


async def _send_refusal(send: Send, refusal: RefusedError, encoding: Encoding) -> None:
    headers = [(b"connection", b"close")]  # the rest of the body is not read
    if refusal.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % refusal.retry_after_seconds))
    if refusal.http_status == 405:
        headers.append((b"allow", b"POST"))
    if refusal.http_status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await _send(send, refusal.http_status, refusal.body(encoding), encoding, headers)


async def _send(
    send: Send,
    status: int,
    body: bytes,
    encoding: Encoding,
    extra: list[tuple[bytes, bytes]] | None = None,
) -> None:
    headers = [
        (b"content-type", _MEDIA_TYPES[encoding].encode()),
        (b"content-length", b"%d" % len(body)),
        *(extra or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
