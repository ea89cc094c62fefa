"""The one path from a request that has come in to the log, whichever door it used."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from memtrace_collector.access.authentication import Presented
from memtrace_collector.access.directory import NO_LIMITS
from memtrace_collector.access.throttle import Throttle
from memtrace_collector.log.errors import LogError
from memtrace_collector.log.format import Encoding, LogRecord, Signal
from memtrace_collector.log.position import LogPosition
from memtrace_collector.receiver.decode import InvalidRequestError, decode
from memtrace_collector.receiver.in_flight import InFlight
from memtrace_collector.receiver.refusal import Code, RefusedError
from memtrace_collector.receiver.tenants import TenantOf, single_tenant
from memtrace_collector.receiver.validate import Checked, check
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

logger = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 64 << 20
MAX_IN_FLIGHT_BYTES = 128 << 20
COMMIT_SECONDS = 8.0
"""How long a request waits for its commit: within the ten seconds of the Python SDK."""

MAX_JSON_VALUES = 5_000_000
"""Objects, arrays and what stands between commas, in one request: decoded, the smallest value
takes fifty bytes. What SDKs write has fewer in 64 MiB."""

Append = Callable[[LogRecord], "Future[LogPosition]"]


class Submission(NamedTuple):
    """A checked request. ``durable`` is None when there was nothing to keep."""

    durable: Future[LogPosition] | None
    checked: Checked


class Ingest:
    """Checks requests and appends them; knows limits and tenants, not transports.

    Args:
        append: ``SegmentLog.append``.
        tenant_of: maps what a client presents to a tenant.
        throttle: limits of single tenants.
        max_request_bytes: largest request, after decompression.
        max_in_flight_bytes: bound of all request bodies held at once; by default 128 MiB, or
            two requests where these may be larger.
        is_shared: whether there may be several tenants, of whom none may take all of that.
    """

    def __init__(
        self,
        append: Append,
        *,
        tenant_of: TenantOf | None = None,
        throttle: Throttle | None = None,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        max_in_flight_bytes: int | None = None,
        is_shared: bool = False,
        metrics: Metrics = NULL_METRICS,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._tenant_of = tenant_of or single_tenant("default")
        self._throttle = throttle or Throttle(lambda _: NO_LIMITS)
        self.max_request_bytes = max_request_bytes
        self.metrics = metrics
        self._append = append
        self._clock_ns = clock_ns
        self.in_flight = InFlight(
            max_in_flight_bytes or max(MAX_IN_FLIGHT_BYTES, 2 * max_request_bytes),
            is_shared=is_shared,
        )

    def admit(self, presented: Presented) -> str:
        """The tenant of a sender that may send now. Asked before a body is read.

        Raises:
            RefusedError: unknown (UNAUTHENTICATED), or over its limits (UNAVAILABLE, 429).
        """
        tenant = self._tenant_of(presented)
        reason = self._throttle.refusal(tenant)
        if reason:
            self.metrics.add("memtrace.receiver.throttled", 1)
            raise RefusedError(Code.UNAVAILABLE, reason, 429)
        return tenant

    def submit(self, tenant: str, signal: Signal, encoding: Encoding, body: bytes) -> Submission:
        """Check a request and hand it to the log. Acknowledge only when ``durable`` resolves.

        Raises:
            RefusedError: malformed (INVALID_ARGUMENT) or not now (UNAVAILABLE).
        """
        if encoding == "json" and len(body) > MAX_JSON_VALUES:
            _refuse_too_many_values(body)
        try:
            checked = check(signal, decode(signal, encoding, body))
        except InvalidRequestError as error:
            raise RefusedError(Code.INVALID_ARGUMENT, str(error)) from error
        if not checked.accepted:
            return Submission(None, checked)
        record = LogRecord(tenant, self._clock_ns(), signal, encoding, body)
        try:
            durable = self._append(record)
        except LogError as error:
            raise unavailable(error) from error
        self._throttle.enter(tenant, len(body))
        durable.add_done_callback(lambda _: self._throttle.leave(tenant))
        return Submission(durable, checked)

    def acknowledge(self, signal: Signal, encoding: Encoding, checked: Checked) -> bytes:
        """The response body, counted."""
        self.metrics.add("memtrace.receiver.accepted", checked.accepted, signal=signal)
        if checked.rejected:
            self.metrics.add("memtrace.receiver.rejected", checked.rejected, signal=signal)
        return response(signal, encoding, checked)

    def refusal(self, error: Exception, transport: str) -> RefusedError:
        """What to answer instead of an acknowledgement, counted.

        An error of our own is answered as one that may pass: any other answer would make the
        sender drop its data.
        """
        if isinstance(error, RefusedError):
            refusal = error
        else:
            logger.error("a request could not be taken", exc_info=error)
            refusal = RefusedError(Code.UNAVAILABLE, "internal error")
        self.metrics.add(
            "memtrace.receiver.refused", 1, transport=transport, code=refusal.code.name
        )
        # its frames hold the request, and would keep it until the garbage collector comes by
        return refusal.with_traceback(None)


def _refuse_too_many_values(body: bytes) -> None:
    if sum(map(body.count, (b"{", b"[", b","))) > MAX_JSON_VALUES:
        raise RefusedError(
            Code.INVALID_ARGUMENT, f"more than {MAX_JSON_VALUES} JSON values; send smaller batches"
        )


def unavailable(error: BaseException) -> RefusedError:
    """What the sender hears when the log did not take its request."""
    return RefusedError(Code.UNAVAILABLE, str(error) or "the commit takes too long")


def response(signal: Signal, encoding: Encoding, checked: Checked) -> bytes:
    """An export response; ``partial_success`` is set only when something was rejected."""
    if not checked.rejected:
        return b"" if encoding == "protobuf" else b"{}"
    if encoding == "json":
        name = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
        partial = {name: str(checked.rejected), "errorMessage": checked.reason}
        return json.dumps({"partialSuccess": partial}).encode()
    if signal == "traces":
        traces = ExportTraceServiceResponse()
        traces.partial_success.rejected_spans = checked.rejected
        traces.partial_success.error_message = checked.reason
        return bytes(traces.SerializeToString())
    logs = ExportLogsServiceResponse()
    logs.partial_success.rejected_log_records = checked.rejected
    logs.partial_success.error_message = checked.reason
    return bytes(logs.SerializeToString())
