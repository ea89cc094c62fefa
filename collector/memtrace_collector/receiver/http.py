"""OTLP/HTTP as a raw ASGI application: no framework between the socket and the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from memtrace_collector.access.authentication import Presented
from memtrace_collector.access.tls import CERTIFICATE_NAMES
from memtrace_collector.log.format import Encoding, Signal
from memtrace_collector.receiver.body import Body
from memtrace_collector.receiver.exports import Exports
from memtrace_collector.receiver.inflate import Coding
from memtrace_collector.receiver.limits import Limits
from memtrace_collector.receiver.refusal import Code, RefusedError, too_large

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_SIGNALS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_ENCODINGS: dict[str, Encoding] = {"application/x-protobuf": "protobuf", "application/json": "json"}
_MEDIA_TYPES = {encoding: media_type for media_type, encoding in _ENCODINGS.items()}
_CODINGS = {
    "": None,
    "identity": None,
    "gzip": Coding.GZIP,
    "x-gzip": Coding.GZIP,
    "deflate": Coding.DEFLATE,
}


class _ClientGoneError(Exception):
    """The connection closed before the body was complete: nobody to answer."""


class OtlpHttp:
    """The ASGI application. Routes: ``POST /v1/traces``, ``POST /v1/logs``.

    It relies on a connection that wakes ``receive`` from time to time while a body is awaited
    (:class:`~memtrace_collector.receiver.http_connection.GuardedConnection`).
    """

    def __init__(self, exports: Exports, limits: Limits) -> None:
        self.limits = limits
        self._exports = exports
        self._ingest = exports.ingest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = _headers(scope)
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

    async def busy(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the shape of an application
        """The application of a connection that is one too many."""
        refusal = RefusedError(Code.UNAVAILABLE, "too many connections")
        encoding = _ENCODINGS.get(_media_type(_headers(scope)), "json")
        await _send_refusal(send, self._ingest.refusal(refusal, "http"), encoding, close=True)

    def count_closed(self, reason: str) -> None:
        """A connection was closed or not taken: ``slow``, too long a ``head``, or too many."""
        self._ingest.metrics.add("memtrace.receiver.connections_closed", 1, reason=reason)

    async def _export(
        self, scope: Scope, headers: dict[str, str], encoding: Encoding | None, receive: Receive
    ) -> bytes:
        signal = _route(scope["path"], scope["method"])
        if encoding is None:
            wanted = " or ".join(_ENCODINGS)
            raise RefusedError(Code.INVALID_ARGUMENT, f"send Content-Type {wanted}", 415)
        names = scope.get(CERTIFICATE_NAMES, ())
        tenant = self._ingest.admit(Presented(headers.get("authorization", ""), names))
        limit = self._ingest.max_request_bytes
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise too_large(limit)
        coding = _coding(headers.get("content-encoding", ""))
        with Body(self._ingest, tenant, coding) as body:
            await self._read(body, receive)
            whole = await body.whole()
            return await self._exports.acknowledged(tenant, signal, encoding, whole)

    async def _read(self, body: Body, receive: Receive) -> None:
        clock = asyncio.get_running_loop().time
        started = clock()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _ClientGoneError
            await body.add(message.get("body", b""))
            more = message.get("more_body", False)
            if more and clock() > self.limits.body_deadline(started, body.received):
                raise RefusedError(Code.UNAVAILABLE, "the body comes too slowly")


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


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _media_type(headers: dict[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _coding(content_encoding: str) -> Coding | None:
    name = content_encoding.strip().lower()
    if name not in _CODINGS:
        raise RefusedError(Code.INVALID_ARGUMENT, f"Content-Encoding {name[:40]!r}: use gzip", 415)
    return _CODINGS[name]


async def _send_refusal(
    send: Send, refusal: RefusedError, encoding: Encoding, *, close: bool = False
) -> None:
    headers = [(b"connection", b"close")] if close else []
    if refusal.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % refusal.retry_after_seconds))
    if refusal.http_status == 405:
        headers.append((b"allow", b"POST"))
    if refusal.http_status == 415:
        headers.append((b"accept-encoding", b"gzip, deflate"))
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
