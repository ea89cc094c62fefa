"""OTLP/gRPC: generic handlers over raw bytes, so that a message is decoded once and by us."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import grpc

from memtrace_collector.access.authentication import Presented
from memtrace_collector.log.errors import LogError
from memtrace_collector.log.format import Signal
from memtrace_collector.log.position import LogPosition
from memtrace_collector.receiver.ingest import COMMIT_SECONDS, Ingest, unavailable
from memtrace_collector.receiver.refusal import Code, RefusedError

_PACKAGE = "opentelemetry.proto.collector"
_SERVICES: dict[str, Signal] = {
    f"{_PACKAGE}.trace.v1.TraceService": "traces",
    f"{_PACKAGE}.logs.v1.LogsService": "logs",
}
_METRICS_SERVICE = f"{_PACKAGE}.metrics.v1.MetricsService"
_NAMES = ("x509_subject_alternative_name", "x509_common_name")
Handler: TypeAlias = "grpc.GenericRpcHandler[bytes, bytes]"
Export = Callable[[bytes, grpc.ServicerContext], bytes]

_CODES = {code.value[0]: code for code in grpc.StatusCode}


def handlers(ingest: Ingest) -> list[Handler]:
    """One generic handler per OTLP service."""
    accepting = [
        _service(name, _Export(ingest, signal).handle) for name, signal in _SERVICES.items()
    ]
    return [*accepting, _service(_METRICS_SERVICE, _refuse_metrics)]


class _Export:
    """``Export`` of one signal. Each call holds its thread until its request is durable."""

    def __init__(self, ingest: Ingest, signal: Signal) -> None:
        self._ingest = ingest
        self._signal = signal

    def handle(self, body: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return self._export(body, context)
        except Exception as error:
            _abort(context, self._ingest.refusal(error, "grpc"))

    def _export(self, body: bytes, context: grpc.ServicerContext) -> bytes:
        ingest = self._ingest
        tenant = ingest.admit(_presented(context))
        ingest.take_room(len(body))
        try:
            submission = ingest.submit(tenant, self._signal, "protobuf", body)
            if submission.durable is not None:
                _until_durable(submission.durable)
        finally:
            ingest.give_room(len(body))
        return ingest.acknowledge(self._signal, "protobuf", submission.checked)


def _until_durable(durable: concurrent.futures.Future[LogPosition]) -> None:
    try:
        durable.result(COMMIT_SECONDS)
    except (LogError, concurrent.futures.TimeoutError) as error:
        durable.cancel()
        raise unavailable(error) from error


def _presented(context: grpc.ServicerContext) -> Presented:
    authorization = dict(context.invocation_metadata()).get("authorization", "")
    certificate: Any = context.auth_context()
    names = [name for field in _NAMES for name in certificate.get(field, ())]
    return Presented(
        authorization if isinstance(authorization, str) else "",
        tuple(name.decode(errors="replace") for name in names),
    )


def _refuse_metrics(body: bytes, context: grpc.ServicerContext) -> bytes:  # noqa: ARG001 - the shape of a handler
    message = "metrics are not kept here; turn the metrics exporter off"
    _abort(context, RefusedError(Code.UNIMPLEMENTED, message))


def _abort(context: grpc.ServicerContext, refusal: RefusedError) -> NoReturn:
    """End the call with the refusal; ``RetryInfo`` travels in the standard trailer."""
    details = refusal.status().SerializeToString()
    context.set_trailing_metadata((("grpc-status-details-bin", details),))
    context.abort(_CODES[refusal.code.value], str(refusal))
    raise AssertionError("abort always raises")


def _service(name: str, handle: Export) -> Handler:
    method = grpc.unary_unary_rpc_method_handler(handle)
    return grpc.method_handlers_generic_handler(name, {"Export": method})
