"""The questions over HTTP, with health, metrics and the page; Starlette on uvicorn.

What is served was captured from agents and their users, so nothing served may run: a strict
content security policy, no markup from data, no other hosts. A page on another host cannot use
this API: writes need a content type that browsers ask about first (and are never told yes),
and a server on loopback answers only to its own names. Every answer is about the caller's own
tenant; health, readiness and the page without its data are for everybody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memtrace_collector import errors
from memtrace_collector.access.authentication import Authenticator
from memtrace_collector.access.guard import METRICS_PATH, Guard
from memtrace_collector.api.client import API_PREFIX
from memtrace_collector.api.handlers import Handlers
from memtrace_collector.api.pages import STATIC_PATH, Pages
from memtrace_collector.api.questions import Questions
from memtrace_collector.settings.checks import is_loopback
from memtrace_collector.telemetry.telemetry import Telemetry

logger = logging.getLogger(__name__)

HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
    b"connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}
_NOT_KEPT = (b"cache-control", b"no-store")
"""Of every answer that says nothing else about it."""
OPEN_PATHS = ("/", "/healthz", "/readyz")
"""With what is below :data:`STATIC_PATH`: the page itself, which holds nothing of anybody's."""
_STATUS = (
    (errors.NotFoundError, 404),
    (errors.ConflictError, 409),
    (errors.WrongUseError, 400),
    (errors.UnreachableError, 503),
    (errors.DamagedError, 500),
)


def build(
    questions: Callable[[str], Questions],
    telemetry: Telemetry,
    ready: Callable[[], str],
    *,
    host: str,
    max_request_bytes: int,
    names: Sequence[str] = (),
    authenticator: Authenticator | None = None,
    trace_url: str = "",
) -> Starlette:
    """The application.

    Args:
        questions: those of a tenant, by name.
        ready: says what is not ready yet, in words; empty when all is.
        host: where it listens.
        max_request_bytes: largest body.
        names: of this server besides those of its machine; none: see :class:`_Names`.
        authenticator: knows who is calling; None: everybody is the tenant ``default``.
        trace_url: template of the address of a span in the trace backend; empty: no links.
    """
    pages = Pages()
    handlers = Handlers(questions, max_request_bytes, trace_url)

    async def readyz(_: Request) -> Response:
        missing = await run_in_threadpool(ready)
        return PlainTextResponse(f"{missing or 'ready'}\n", 503 if missing else 200)

    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        shown, media_type = await run_in_threadpool(telemetry.render, accept)
        return Response(shown, media_type=media_type)

    return Starlette(
        routes=[
            Route("/", pages.index),
            Route("/healthz", _healthz),
            Route("/readyz", readyz),
            Route(METRICS_PATH, metrics),
            Mount(API_PREFIX, routes=handlers.routes()),
            Route(f"{STATIC_PATH}/{{path:path}}", pages.file),
        ],
        middleware=[
            Middleware(_Headers),
            Middleware(_Names, host=host, names=names),
            Middleware(
                Guard,
                authenticator=authenticator or Authenticator(),
                open_paths=OPEN_PATHS,
                open_folder=f"{STATIC_PATH}/",
                metrics=telemetry,
            ),
        ],
        exception_handlers={errors.MemtraceError: _tell},
    )


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n")


class _Headers:
    """Puts the security headers on every response, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                if all(name != _NOT_KEPT[0] for name, _ in given):
                    given.append(_NOT_KEPT)
                message["headers"] = [*given, *HEADERS.items()]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class _Names:
    """Answers only to the server's own names, so that no other site's name can be pointed here.

    A server that others may reach, and that was told no names, answers to all.
    """

    def __init__(self, app: ASGIApp, host: str, names: Sequence[str]) -> None:
        self._app = app
        self._asks = is_loopback(host) or bool(names)
        self._names = frozenset((host, *(name.lower() for name in names)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._asks:
            asked = _hostname(Headers(scope=scope).get("host", ""))
            if asked not in self._names and not is_loopback(asked):
                refusal = PlainTextResponse("this server has another name\n", 400)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _tell(_: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse({"error": type(error).__name__, "message": str(error)}, status)


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
