"""The questions over HTTP, with health, metrics and the page; Starlette on uvicorn.

What is served was captured from agents and their users, so nothing served may run: a strict
content security policy, no markup from data, no other hosts. A page on another host cannot use
this API: writes need a content type that browsers ask about first (and are never told yes),
and a server on loopback answers only to its own names. Every answer is about the caller's own
tenant; health and readiness are told to everybody.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memtrace_collector import errors
from memtrace_collector.access.authentication import Authenticator
from memtrace_collector.access.guard import METRICS_PATH, Guard, caller_of
from memtrace_collector.access.tls import uvicorn_options
from memtrace_collector.api.client import API_PREFIX
from memtrace_collector.api.questions import Questions, Replaying
from memtrace_collector.settings.checks import is_loopback
from memtrace_collector.settings.tls import NO_TLS, TlsConfig
from memtrace_collector.telemetry.prometheus import CONTENT_TYPE, Telemetry

logger = logging.getLogger(__name__)

STOP_SECONDS = 2
STATIC = Path(__file__).parent / "static"
HEADERS = {
    b"content-security-policy": b"default-src 'none'; script-src 'self'; style-src 'self'; "
    b"connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}
OPEN_PATHS = ("/healthz", "/readyz")
_STATUS = (
    (errors.NotFoundError, 404),
    (errors.WrongUseError, 400),
    (errors.UnreachableError, 503),
    (errors.DamagedError, 500),
)
_MEDIA_TYPES = {"json": "application/json", "graphml": "application/xml"}


def build(
    questions: Callable[[str], Questions],
    telemetry: Telemetry,
    ready: Callable[[], str],
    *,
    host: str,
    max_request_bytes: int,
    authenticator: Authenticator | None = None,
) -> Starlette:
    """The application.

    Args:
        questions: those of a tenant, by name.
        ready: says what is not ready yet, in words; empty when all is.
        host: where it listens.
        max_request_bytes: largest body.
        authenticator: knows who is calling; None: everybody is the tenant ``default``.
    """
    handlers = _Handlers(questions, max_request_bytes)

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        missing = await run_in_threadpool(ready)
        return PlainTextResponse(f"{missing or 'ready'}\n", 503 if missing else 200)

    async def metrics(_: Request) -> Response:
        return Response(await run_in_threadpool(telemetry.render), media_type=CONTENT_TYPE)

    async def page(_: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    return Starlette(
        routes=[
            Route("/", page),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route(METRICS_PATH, metrics),
            Mount(API_PREFIX, routes=handlers.routes()),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[
            Middleware(_Headers),
            Middleware(_Names, host=host),
            Middleware(
                Guard,
                authenticator=authenticator or Authenticator(),
                open_paths=OPEN_PATHS,
                metrics=telemetry,
            ),
        ],
        exception_handlers={errors.MemtraceError: _tell},
    )


class _Handlers:
    """One handler per question: read the parameters, ask in a thread, answer in JSON."""

    def __init__(self, questions: Callable[[str], Questions], max_request_bytes: int) -> None:
        self._questions = questions
        self._max_request_bytes = max_request_bytes

    def routes(self) -> list[Route]:
        read = self._read
        return [
            read("/graphs", lambda ask, _: ask.graphs()),
            Route("/graph", self._graph),
            read("/hash", lambda ask, q: {"hash": ask.graph_hash(_needed(q, "graph"))}),
            read("/ancestry", lambda ask, q: ask.ancestry(_needed(q, "answer"))),
            read("/history", lambda ask, q: ask.history(_needed(q, "graph"), _needed(q, "record"))),
            read(
                "/verdicts",
                lambda ask, q: ask.verdicts(
                    q.get("graph", ""),
                    q.get("stage", ""),
                    q.get("type", ""),
                    q.get("history") == "true",
                ),
            ),
            read("/set-aside", lambda ask, q: ask.set_aside(q.get("graph", ""))),
            read("/why", lambda ask, q: ask.why(_needed(q, "answer"), q.get("about", ""))),
            read("/impact", lambda ask, q: ask.impact(_needed(q, "target"))),
            read("/case", lambda ask, q: ask.case(_needed(q, "answer"), q.get("redact") == "true")),
            read("/invariants", lambda ask, q: ask.invariants(q.get("graph", ""))),
            read("/undelivered", lambda ask, _: ask.undelivered()),
            Route("/flag", self._flag, methods=["POST"]),
            Route("/attribute", self._attribute, methods=["POST"]),
            Route("/explore", self._explore, methods=["POST"]),
            Route("/append", self._append, methods=["POST"]),
            Route("/settle", self._settle, methods=["POST"]),
            Route("/redeliver", self._redeliver, methods=["POST"]),
            Route("/erase", self._erase, methods=["POST"]),
        ]

    def _asked(self, request: Request) -> Questions:
        """The questions of the caller's tenant, and of no other."""
        return self._questions(caller_of(request.scope).tenant)

    def _read(self, path: str, ask: Callable[[Questions, dict[str, str]], Any]) -> Route:
        async def handle(request: Request) -> Response:
            query = dict(request.query_params)
            return JSONResponse(await run_in_threadpool(ask, self._asked(request), query))

        return Route(path, handle)

    async def _graph(self, request: Request) -> Response:
        query = dict(request.query_params)
        output_format = query.get("format", "json")
        text = await run_in_threadpool(
            self._asked(request).graph,
            _needed(query, "graph"),
            query.get("answer", ""),
            output_format,
        )
        return Response(text, media_type=_MEDIA_TYPES.get(output_format, "text/plain"))

    async def _flag(self, request: Request) -> Response:
        body = await self._json(request)
        expected, evidence = body.get("expected"), body.get("evidence") or []
        if not (expected is None or isinstance(expected, str)) or not _are_texts(evidence):
            raise errors.WrongUseError("expected is a text or null, evidence a list of texts")
        result = await run_in_threadpool(
            self._asked(request).flag,
            _needed(body, "answer"), expected, evidence, str(body.get("reason") or ""),
        )  # fmt: skip
        return JSONResponse(result)

    async def _attribute(self, request: Request) -> Response:
        body = await self._json(request)
        result = await run_in_threadpool(
            self._asked(request).attribute,
            str(body.get("method") or "rules"),
            str(body.get("graph") or ""),
            body.get("evidence") is not False,
            _replaying(body.get("replay")),
        )
        return JSONResponse(result)

    async def _explore(self, request: Request) -> Response:
        body = await self._json(request)
        arguments, text_chars = body.get("arguments", {}), body.get("text_chars", 0)
        if not isinstance(arguments, dict) or not isinstance(text_chars, int):
            raise errors.WrongUseError("arguments is an object, text_chars a whole number")
        result = await run_in_threadpool(
            self._asked(request).explore, _needed(body, "question"), arguments, text_chars
        )
        return JSONResponse(result)

    async def _append(self, request: Request) -> Response:
        _expect(request, "application/x-protobuf")
        body = await self._body(request)
        signal = request.query_params.get("signal", "traces")
        await run_in_threadpool(self._asked(request).append, body, signal)
        return JSONResponse({})

    async def _settle(self, request: Request) -> Response:
        await self._json(request)
        return JSONResponse(await run_in_threadpool(self._asked(request).settle))

    async def _erase(self, request: Request) -> Response:
        body = await self._json(request)
        graph_id = "" if body.get("everything") is True else _needed(body, "graph")
        return JSONResponse(await run_in_threadpool(self._asked(request).erase, graph_id))

    async def _redeliver(self, request: Request) -> Response:
        await self._json(request)
        return JSONResponse(await run_in_threadpool(self._asked(request).redeliver))

    async def _json(self, request: Request) -> dict[str, Any]:
        _expect(request, "application/json")
        try:
            body = json.loads(await self._body(request))
        except ValueError:
            raise errors.WrongUseError("the body is not JSON") from None
        if not isinstance(body, dict):
            raise errors.WrongUseError("the body is not a JSON object")
        return body

    async def _body(self, request: Request) -> bytes:
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self._max_request_bytes:
                raise errors.WrongUseError(
                    f"the body is larger than {self._max_request_bytes} bytes"
                )
            parts.append(part)
        return b"".join(parts)


class _Headers:
    """Puts the security headers on every response, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS.items()]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class _Names:
    """Answers only to the server's own names, so that no other site's name can be pointed here.

    A server that others may reach has names that it does not know, and answers to all.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_loopback(self._host):
            asked = _hostname(Headers(scope=scope).get("host", ""))
            if asked != self._host and not is_loopback(asked):
                refusal = PlainTextResponse("this server has another name\n", 400)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


class ApiServer:
    """The application on a port, in a thread of its own."""

    def __init__(
        self,
        app: Starlette,
        host: str,
        port: int,
        *,
        lifespan: Literal["on", "off"] = "off",
        option: str = "--api-port",
        tls: TlsConfig = NO_TLS,
    ) -> None:
        """Bind (so that the address is known before anything starts).

        Args:
            app: what is served.
            host: name or address to listen on.
            port: 0 takes a free one.
            lifespan: whether the application has something to set up and take down.
            option: with which option another address is chosen, for the error.
            tls: a client shows a certificate or a token.

        Raises:
            UnreachableError: the address is taken or not ours.
        """
        self._socket = _bind(host, port, option)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan=lifespan,
            timeout_graceful_shutdown=STOP_SECONDS,
            **uvicorn_options(tls, needs_certificate=False),
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="memtrace-api", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._socket.getsockname()[:2]
        return str(host), int(port)

    def start(self) -> None:
        self._socket.listen(128)
        self._thread.start()

    def stop(self) -> None:
        """Finish what is being answered (at most ``STOP_SECONDS``), then close."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(2 * STOP_SECONDS)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


def _bind(host: str, port: int, option: str) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise errors.UnreachableError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another {option}"
        ) from None


def _tell(_: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse({"error": type(error).__name__, "message": str(error)}, status)


def _replaying(given: Any) -> Replaying | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise errors.WrongUseError("replay is an object with runs and model")
    runs, model = given.get("runs", 0), given.get("model", "")
    if isinstance(runs, bool) or not isinstance(runs, int) or not isinstance(model, str):
        raise errors.WrongUseError("replay.runs is a whole number, replay.model a text")
    return Replaying(runs, model)


def _needed(parameters: dict[str, Any], name: str) -> str:
    value = parameters.get(name)
    if not isinstance(value, str) or not value:
        raise errors.WrongUseError(f"the parameter {name} is missing")
    return value


def _expect(request: Request, content_type: str) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != content_type:
        raise errors.WrongUseError(f"expected the content type {content_type}, not {given!r}")


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
