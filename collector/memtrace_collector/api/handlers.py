"""One handler per question: read the parameters, ask in a thread, answer in JSON."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from memtrace_collector import errors
from memtrace_collector.access.guard import caller_of
from memtrace_collector.api.questions import Questions, Replaying
from memtrace_collector.attribution.judging.said import read as said_from

_MEDIA_TYPES = {"json": "application/json", "graphml": "application/xml"}
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a body is refused with that has half a surrogate pair, or very many brackets, as well."""


class Handlers:
    """The routes of the API, each about the caller's own tenant."""

    def __init__(
        self,
        questions: Callable[[str], Questions],
        max_request_bytes: int,
        trace_url: str = "",
    ) -> None:
        self._questions = questions
        self._max_request_bytes = max_request_bytes
        self._trace_url = trace_url

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
            Route("/about", self._about),
            Route("/view/{name}", self._view),
            Route("/flag", self._flag, methods=["POST"]),
            Route("/judge", self._judge, methods=["POST"]),
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

    async def _about(self, request: Request) -> Response:
        """What the page needs to know before it shows anything."""
        told = {
            "version": importlib.metadata.version("memtrace-otel"),
            "tenant": caller_of(request.scope).tenant,
            "trace_url": self._trace_url,
        }
        return JSONResponse(told)

    async def _view(self, request: Request) -> Response:
        name, parameters = request.path_params["name"], dict(request.query_params)
        return JSONResponse(await run_in_threadpool(self._asked(request).view, name, parameters))

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

    async def _judge(self, request: Request) -> Response:
        body = await self._json(request)
        answer = _needed(body, "answer")
        said = said_from({name: value for name, value in body.items() if name != "answer"})
        return JSONResponse(await run_in_threadpool(self._asked(request).judge, answer, said))

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
            body = msgspec.json.decode(await self._body(request))
        except _NOT_JSON:
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


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
