"""Which spans of a trace a destination has, asked through its own query API."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx
from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 32 << 20
_NOT_FOUND = 404
_NOT_BLANK = re.compile(r"\S")

Api = Literal["jaeger", "tempo"]
_PATHS: Mapping[Api, str] = {"jaeger": "/api/v3/traces/", "tempo": "/api/traces/"}
_MEDIA_TYPES: Mapping[Api, str] = {
    "jaeger": "application/json",
    "tempo": "application/protobuf",
}


class Found(NamedTuple):
    """Span ids of a trace, lower-case hex; None: nobody answered as expected, and why."""

    span_ids: frozenset[str] | None
    message: str = ""


class TraceQuery:
    """The query API of a Jaeger (v3) or a Tempo.

    Args:
        api: which of them.
        url: where it answers, without the path of the API.
        headers: sent with each request.
        ca: PEM file of who signed its certificate; None: whom the system trusts.
        timeout: in seconds.

    Raises:
        OSError: ``ca`` cannot be read.
    """

    def __init__(
        self,
        api: Api,
        url: str,
        headers: Mapping[str, str] | None = None,
        ca: Path | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._url = url.rstrip("/") + _PATHS[api]
        self._read = _READERS[api]
        trusted = ssl.create_default_context(cafile=ca) if ca else True
        self._client = httpx.Client(
            headers={**(headers or {}), "accept": _MEDIA_TYPES[api]},
            timeout=timeout,
            verify=trusted,
        )

    def spans_of(self, trace_id: str) -> Found:
        """The spans of a trace, none when it is not there. Never raises for what a server or a
        network does."""
        try:
            with self._client.stream("GET", self._url + trace_id) as response:
                status, body = response.status_code, _bounded(response)
        except httpx.HTTPError as error:
            return Found(None, f"{type(error).__name__}: {error}")
        if status == _NOT_FOUND:
            return Found(frozenset())
        if status >= 300:
            return Found(None, f"HTTP {status}")
        if body is None:
            return Found(None, f"its answer is larger than {MAX_ANSWER_BYTES} bytes")
        try:
            return Found(frozenset(self._read(body)))
        except (ValueError, KeyError, TypeError, AttributeError, DecodeError, RecursionError):
            return Found(None, "its answer cannot be read")

    def close(self) -> None:
        self._client.close()


def _bounded(response: httpx.Response) -> bytes | None:
    parts, size = [], 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            return None
    return b"".join(parts)


def _of_jaeger(body: bytes) -> Iterator[str]:
    """One JSON object, or one after the other where it streams."""
    text, at, decoder = body.decode(), 0, json.JSONDecoder()
    while (start := _NOT_BLANK.search(text, at)) is not None:
        answer, at = decoder.raw_decode(text, start.start())
        yield from _span_ids(answer["result"])


def _span_ids(traces: Mapping[str, Any]) -> Iterator[str]:
    for group in traces.get("resourceSpans", ()):
        for scope in group.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                yield span["spanId"].lower()


def _of_tempo(body: bytes) -> Iterator[str]:
    for group in TracesData.FromString(body).resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                yield span.span_id.hex()


_READERS: Mapping[Api, Callable[[bytes], Iterator[str]]] = {
    "jaeger": _of_jaeger,
    "tempo": _of_tempo,
}
