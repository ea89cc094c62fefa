"""One OTLP destination over HTTP or gRPC: sends bytes, says what became of them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit, urlunsplit

import grpc
import httpx

from memtrace_collector.exporter.delivery import Delivery
from memtrace_collector.exporter.responses import accepted, http_delivery, retry_info_seconds
from memtrace_collector.log.format import Encoding, Signal

TIMEOUT_SECONDS = 10.0
_MAX_RESPONSE_BYTES = 4 << 20
_SURELY_SMALL_BYTES = 16 << 10
"""A gRPC server that has run out of anything but room for a message answers alike."""
_FIRST_RECONNECT_MS, _LONGEST_RECONNECT_MS = 200, 5_000
"""The callers pace themselves; the channel's own pause (up to two minutes) would come on top."""

_MEDIA_TYPES: Mapping[Encoding, str] = {
    "protobuf": "application/x-protobuf",
    "json": "application/json",
}
_METHODS: Mapping[Signal, str] = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
_RETRYABLE_CODES = frozenset(
    (
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    )
)


class Transport(Protocol):
    """How requests travel. Never raises for what a destination or a network does."""

    encodings: frozenset[Encoding]

    def send(self, signal: Signal, payload: bytes, encoding: Encoding) -> Delivery: ...

    def close(self) -> None: ...


class OtlpDestination:
    """A Collector, a Jaeger, a Tempo: anything that takes OTLP.

    Args:
        name: identifies it in cursors and counters.
        url: ``http(s)://host:port[/path]`` or ``grpc(s)://host:port``. ``/v1/traces`` and
            ``/v1/logs`` are appended to an HTTP path that does not end in one of them.
        headers: sent with each request (gRPC: as metadata).
        timeout: of one attempt, in seconds.
        ca: PEM file of who signed its certificate; None: whom the system trusts.
        longest_text: bytes of a text in a span that it takes; None: any. Whoever sends sees to it.

    Raises:
        ValueError: the URL is none of these forms.
        OSError: ``ca`` cannot be read.
    """

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
        ca: Path | None = None,
        longest_text: int | None = None,
    ) -> None:
        self.name = name
        self.url = url
        self.longest_text = longest_text
        self._transport = _transport(url, headers or {}, timeout, ca)

    @property
    def encodings(self) -> frozenset[Encoding]:
        """Encodings that it takes."""
        return self._transport.encodings

    def send(self, signal: Signal, payload: bytes, encoding: Encoding = "protobuf") -> Delivery:
        """Send an export request once; retrying is the caller's."""
        return self._transport.send(signal, payload, encoding)

    def close(self) -> None:
        self._transport.close()


class _Http:
    encodings: frozenset[Encoding] = frozenset(("protobuf", "json"))

    def __init__(
        self, url: str, headers: Mapping[str, str], timeout: float, ca: Path | None
    ) -> None:
        self._urls = {signal: signal_url(url, signal) for signal in _METHODS}
        trusted = ssl.create_default_context(cafile=ca) if ca else True
        self._client = httpx.Client(headers=dict(headers), timeout=timeout, verify=trusted)

    def send(self, signal: Signal, payload: bytes, encoding: Encoding) -> Delivery:
        headers = {"content-type": _MEDIA_TYPES[encoding]}
        try:
            with self._client.stream(
                "POST", self._urls[signal], content=payload, headers=headers
            ) as response:
                body = _bounded(response)
        except httpx.HTTPError as error:
            return Delivery("retry", f"{type(error).__name__}: {error}")
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        retry_after = response.headers.get("retry-after")
        return http_delivery(signal, response.status_code, media_type, body, retry_after)

    def close(self) -> None:
        self._client.close()


class _Grpc:
    encodings: frozenset[Encoding] = frozenset(("protobuf",))

    def __init__(
        self,
        target: str,
        secure: bool,
        headers: Mapping[str, str],
        timeout: float,
        ca: Path | None,
    ) -> None:
        options = [
            ("grpc.max_receive_message_length", _MAX_RESPONSE_BYTES),
            ("grpc.initial_reconnect_backoff_ms", _FIRST_RECONNECT_MS),
            ("grpc.max_reconnect_backoff_ms", _LONGEST_RECONNECT_MS),
        ]
        trusted = grpc.ssl_channel_credentials(ca.read_bytes() if ca else None)
        self._channel = (
            grpc.secure_channel(target, trusted, options)
            if secure
            else grpc.insecure_channel(target, options)
        )
        self._metadata = tuple((name.lower(), value) for name, value in headers.items())
        self._timeout = timeout
        self._calls = {
            signal: self._channel.unary_unary(method, _as_is, _as_is)
            for signal, method in _METHODS.items()
        }

    def send(self, signal: Signal, payload: bytes, encoding: Encoding) -> Delivery:
        if encoding not in self.encodings:
            return Delivery("refused", f"OTLP/gRPC does not carry {encoding}")
        try:
            answer = self._calls[signal](payload, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            return _grpc_failure(error, len(payload))
        return accepted(signal, _MEDIA_TYPES["protobuf"], answer)

    def close(self) -> None:
        self._channel.close()


def signal_url(url: str, signal: Signal) -> str:
    """Where a signal goes, given the destination's URL."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    for known in _METHODS:
        path = path.removesuffix(f"/v1/{known}")
    return urlunsplit(parts._replace(path=f"{path}/v1/{signal}"))


def _transport(url: str, headers: Mapping[str, str], timeout: float, ca: Path | None) -> Transport:
    parts = urlsplit(url)
    if parts.hostname and parts.scheme in ("http", "https"):
        return _Http(url, headers, timeout, ca)
    if parts.hostname and parts.port and parts.scheme in ("grpc", "grpcs"):
        return _Grpc(parts.netloc, parts.scheme == "grpcs", headers, timeout, ca)
    raise ValueError(f"not an OTLP destination: {url!r}; use http(s)://… or grpc(s)://host:port")


def _as_is(message: bytes) -> bytes:
    return message


def _bounded(response: httpx.Response) -> bytes:
    body = b""
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > _MAX_RESPONSE_BYTES:
            break
    return body[:_MAX_RESPONSE_BYTES]


def _grpc_failure(error: grpc.RpcError, size: int) -> Delivery:
    code = error.code()
    message = f"{code.name}: {error.details()}"
    trailers = {item.key: item.value for item in error.trailing_metadata() or ()}
    details = trailers.get("grpc-status-details-bin")
    wait = retry_info_seconds(details) if isinstance(details, bytes) else None
    if code in _RETRYABLE_CODES:
        return Delivery("retry", message, wait)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and wait is not None:
        return Delivery("retry", message, wait)
    too_large = code is grpc.StatusCode.RESOURCE_EXHAUSTED and size > _SURELY_SMALL_BYTES
    not_offered = code is grpc.StatusCode.UNIMPLEMENTED
    return Delivery("refused", message, is_too_large=too_large, is_not_offered=not_offered)
