"""Asks who is calling before an ASGI application is."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from memtrace_collector.access.authentication import Authenticator, Caller, DeniedError, Presented
from memtrace_collector.access.tls import CERTIFICATE_NAMES
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CALLER = "memtrace.caller"
"""Where a request's scope holds its :class:`Caller`."""
METRICS_PATH = "/metrics"
REQUESTED_BY = b"x-requested-by"
"""A header by which a script says that it asks for the token itself."""
_BEARER = (b"www-authenticate", b"Bearer")
_BASIC = (b"www-authenticate", b'Basic realm="memtrace-otel, the token is the password"')


class Guard:
    """Lets through who is known, with the caller in the scope.

    Args:
        open_paths: answered to everybody.
        open_folder: a path that ends in ``/``; what is below is answered to everybody as well.
        tenant: only this one's callers are let in; empty: every tenant's.
    """

    def __init__(
        self,
        app: App,
        authenticator: Authenticator,
        open_paths: Collection[str] = (),
        open_folder: str = "",
        tenant: str = "",
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._open_paths = frozenset(open_paths)
        self._open_folder = open_folder
        self._tenant = tenant
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            caller = self._authenticator.authenticate(_presented(scope))
        except DeniedError as error:
            self._metrics.add("memtrace.api.denied", 1)
            await _refuse(send, 401, str(error), _challenges(scope))
            return
        if not self._may(caller, scope["path"]):
            self._metrics.add("memtrace.api.denied", 1)
            await _refuse(send, 403, "this token is not for that", [])
            return
        scope[CALLER] = caller
        await self._app(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        is_below = bool(self._open_folder) and path.startswith(self._open_folder)
        return is_below or path in self._open_paths

    def _may(self, caller: Caller, path: str) -> bool:
        if path == METRICS_PATH:
            return caller.reads_metrics
        return bool(caller.tenant) and self._tenant in ("", caller.tenant)


def caller_of(scope: Scope) -> Caller:
    """Who a guarded request comes from."""
    caller = scope[CALLER]
    assert isinstance(caller, Caller)  # noqa: S101 - tells the type, the guard put it there
    return caller


def _presented(scope: Scope) -> Presented:
    headers = dict(scope["headers"])
    authorization = headers.get(b"authorization", b"").decode("latin-1")
    return Presented(authorization, scope.get(CERTIFICATE_NAMES, ()))


def _challenges(scope: Scope) -> list[tuple[bytes, bytes]]:
    """A browser asks for a password by itself where it is told that one would do."""
    is_script = any(name == REQUESTED_BY for name, _ in scope["headers"])
    return [_BEARER] if is_script else [_BEARER, _BASIC]


async def _refuse(
    send: Send, status: int, message: str, headers: list[tuple[bytes, bytes]]
) -> None:
    body = json.dumps({"error": "WrongUseError", "message": message}).encode()
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
