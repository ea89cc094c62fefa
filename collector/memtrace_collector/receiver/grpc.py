"""OTLP/gRPC: generic handlers over raw bytes, so that a message is decoded once and by us.

The calls are taken as streams of requests, of which a unary caller sends one: only so is the sender
known before its message is read, and can a message that never ends be given up. Messages
arrive as they were sent: gRPC's own decompression has, in versions that are in use, no limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc
import grpc.aio

from memtrace_collector.access.authentication import Presented
from memtrace_collector.log.format import Signal
from memtrace_collector.receiver.body import Body
from memtrace_collector.receiver.exports import Exports
from memtrace_collector.receiver.inflate import coding_of
from memtrace_collector.receiver.limits import Limits
from memtrace_collector.receiver.refusal import Code, RefusedError

_PACKAGE = "opentelemetry.proto.collector"
_SERVICES: dict[str, Signal] = {
    f"{_PACKAGE}.trace.v1.TraceService": "traces",
    f"{_PACKAGE}.logs.v1.LogsService": "logs",
}
_METRICS_SERVICE = f"{_PACKAGE}.metrics.v1.MetricsService"
_NAMES = ("x509_subject_alternative_name", "x509_common_name")
Handler: TypeAlias = "grpc.GenericRpcHandler[bytes, bytes]"
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Export = Callable[[AsyncIterator[bytes], Any], Awaitable[bytes]]

_CODES = {code.value[0]: code for code in grpc.StatusCode}


def options(max_request_bytes: int, limits: Limits) -> list[tuple[str, int]]:
    """Channel arguments of the server (``grpc_types.h`` of gRPC's core)."""
    return [
        ("grpc.max_receive_message_length", max_request_bytes),
        ("grpc.per_message_decompression", 0),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.max_concurrent_streams", 256),
        ("grpc.server_handshake_timeout_ms", round(1000 * limits.header_seconds)),
        ("grpc.max_connection_idle_ms", round(1000 * limits.idle_seconds)),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        # clients that ask after us every ten seconds are usual, and no attack
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        ("grpc.so_reuseport", 0),
    ]


def handlers(exports: Exports, limits: Limits) -> list[Handler]:
    """One generic handler per OTLP service."""
    accepting = [
        _service(name, _Export(exports, limits, signal).handle)
        for name, signal in _SERVICES.items()
    ]
    return [*accepting, _service(_METRICS_SERVICE, _refuse_metrics)]


class _Export:
    """``Export`` of one signal."""

    def __init__(self, exports: Exports, limits: Limits, signal: Signal) -> None:
        self._exports = exports
        self._ingest = exports.ingest
        self._limits = limits
        self._signal = signal

    async def handle(self, messages: AsyncIterator[bytes], context: Context) -> bytes:  # noqa: ARG002 - the shape of a handler
        try:
            return await self._export(context)
        except Exception as error:
            refusal = self._ingest.refusal(error, "grpc")
        return await _abort(context, refusal)

    async def _export(self, context: Context) -> bytes:
        tenant = self._ingest.admit(_presented(context))
        message = await self._first(context)
        with Body(self._ingest, tenant, coding_of(message)) as body:
            await body.add(message)
            whole = await body.whole()
            return await self._exports.acknowledged(tenant, self._signal, "protobuf", whole)

    async def _first(self, context: Context) -> bytes:
        """The message; one that is not complete in time is given up."""
        patience = _Patience(asyncio.current_task())
        timer = asyncio.get_running_loop().call_later(self._limits.message_seconds, patience.end)
        try:
            # not from `messages`: a generator that is not read to its end keeps the whole call
            # in memory until the garbage collector comes by
            message = await context.read()
        except asyncio.CancelledError:
            if not patience.has_ended:
                raise
            raise RefusedError(Code.UNAVAILABLE, "the message comes too slowly") from None
        finally:
            timer.cancel()
        if not isinstance(message, bytes):  # `grpc.aio.EOF`, which its types do not know
            raise RefusedError(Code.INVALID_ARGUMENT, "a call without a message")
        return message


class _Patience:
    """Interrupts a task, and tells this from every other reason why one may be cancelled."""

    def __init__(self, task: asyncio.Task[Any] | None) -> None:
        self._task = task
        self.has_ended = False

    def end(self) -> None:
        self.has_ended = True
        if self._task is not None:
            self._task.cancel()


def _presented(context: Context) -> Presented:
    metadata = dict(context.invocation_metadata() or ())
    authorization = metadata.get("authorization", "")
    shown = context.auth_context()
    names = [name for key in _NAMES for name in shown.get(key, ())]
    return Presented(
        authorization if isinstance(authorization, str) else "",
        tuple(name.decode(errors="replace") for name in names),
    )


async def _refuse_metrics(messages: AsyncIterator[bytes], context: Context) -> bytes:  # noqa: ARG001 - the shape of a handler
    message = "metrics are not kept here; turn the metrics exporter off"
    return await _abort(context, RefusedError(Code.UNIMPLEMENTED, message))


async def _abort(context: Context, refusal: RefusedError) -> bytes:
    """End the call with the refusal; ``RetryInfo`` travels in the standard trailer.

    Never returns.
    """
    details = refusal.status().SerializeToString()
    trailer = (("grpc-status-details-bin", details),)
    await context.abort(_CODES[refusal.code.value], str(refusal), trailer)
    raise AssertionError("abort always raises")


def _service(name: str, handle: Export) -> Handler:
    method = grpc.stream_unary_rpc_method_handler(handle)
    return grpc.method_handlers_generic_handler(name, {"Export": method})
