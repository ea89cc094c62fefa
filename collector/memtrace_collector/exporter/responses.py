"""Reading a destination's answer as the OTLP specification means it. Pure."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from memtrace_collector.exporter.delivery import DELIVERED, Delivery
from memtrace_collector.log.format import Signal

RETRYABLE_HTTP = frozenset((429, 502, 503, 504))
TOO_LARGE_HTTP = 413
NOT_OFFERED_HTTP = frozenset((404, 405, 501))
_MAX_MESSAGE_CHARS = 300


def http_delivery(
    signal: Signal,
    status: int,
    media_type: str,
    body: bytes,
    retry_after: str | None = None,
    clock: Callable[[], float] = time.time,
) -> Delivery:
    """The outcome of an HTTP response."""
    if 200 <= status < 300:
        return accepted(signal, media_type, body)
    message = f"HTTP {status}: {_error_message(media_type, body)}".removesuffix(": ")
    if status in RETRYABLE_HTTP:
        return Delivery("retry", message, _retry_after_seconds(retry_after, clock))
    return Delivery(
        "refused",
        message,
        is_too_large=status == TOO_LARGE_HTTP,
        is_not_offered=status in NOT_OFFERED_HTTP,
    )


def accepted(signal: Signal, media_type: str, body: bytes) -> Delivery:
    """The outcome of a success response: delivered, unless part of it was rejected."""
    if media_type == "application/json":
        rejected, message = _partial_json(signal, body)
    else:
        rejected, message = _partial_protobuf(signal, body)
    if rejected:
        return Delivery("refused", f"{rejected} rejected: {_short(message)}", rejected=rejected)
    return Delivery("delivered", f"warning: {_short(message)}") if message else DELIVERED


def retry_info_seconds(details: bytes) -> float | None:
    """The delay of a ``RetryInfo`` inside ``grpc-status-details-bin``."""
    status, info = Status(), RetryInfo()
    try:
        status.ParseFromString(details)
    except DecodeError:
        return None
    for detail in status.details:
        if detail.Is(RetryInfo.DESCRIPTOR) and detail.Unpack(info):
            return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)
    return None


def _partial_protobuf(signal: Signal, body: bytes) -> tuple[int, str]:
    try:
        if signal == "traces":
            spans = ExportTraceServiceResponse.FromString(body).partial_success
            return int(spans.rejected_spans), str(spans.error_message)
        records = ExportLogsServiceResponse.FromString(body).partial_success
        return int(records.rejected_log_records), str(records.error_message)
    except DecodeError:
        return 0, ""


def _partial_json(signal: Signal, body: bytes) -> tuple[int, str]:
    name = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
    try:
        partial = json.loads(body or b"{}").get("partialSuccess") or {}
        return int(partial.get(name) or 0), str(partial.get("errorMessage", ""))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return 0, ""


def _error_message(media_type: str, body: bytes) -> str:
    if media_type == "application/x-protobuf":
        try:
            return _short(Status.FromString(body).message)
        except DecodeError:
            return ""
    return _short(body.decode(errors="replace"))


def _short(text: str) -> str:
    return " ".join(text.split())[:_MAX_MESSAGE_CHARS]


def _retry_after_seconds(value: str | None, clock: Callable[[], float]) -> float | None:
    """``Retry-After``: seconds, or a date."""
    if not value:
        return None
    try:
        seconds = float(value) if value.strip().isdecimal() else _until(value, clock)
    except (ValueError, TypeError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _until(date: str, clock: Callable[[], float]) -> float:
    return max(0.0, parsedate_to_datetime(date).timestamp() - clock())
