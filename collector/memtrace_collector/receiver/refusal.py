"""Saying no so that the sender does the right thing: which refusals it retries is the protocol's.

Only ``UNAVAILABLE`` (HTTP 503) is retried; everything else makes the sender drop its data, so
nothing that may pass later is ever refused in another way (OTLP specification 1.11, "Failures").
"""

from __future__ import annotations

import json
from enum import IntEnum

from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from memtrace_collector.log.format import Encoding

MAX_MESSAGE_CHARS = 1_000
RETRY_AFTER_SECONDS = 2
"""Short enough for the Python SDK, which gives up after ten seconds in all."""


class Code(IntEnum):
    """The ``google.rpc.Code`` values in use here."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


_HTTP_STATUS = {
    Code.INVALID_ARGUMENT: 400,
    Code.NOT_FOUND: 404,
    Code.RESOURCE_EXHAUSTED: 413,
    Code.UNIMPLEMENTED: 404,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}


class RefusedError(Exception):
    """A request is refused as a whole.

    ``http_status`` differs from the code's own only where HTTP knows better (405, 415).
    """

    def __init__(self, code: Code, message: str, http_status: int | None = None) -> None:
        super().__init__(message[:MAX_MESSAGE_CHARS])
        self.code = code
        self.http_status = http_status or _HTTP_STATUS[code]

    @property
    def retry_after_seconds(self) -> int | None:
        """When to come back; None: never with the same request."""
        return RETRY_AFTER_SECONDS if self.code is Code.UNAVAILABLE else None

    def status(self) -> Status:
        """``google.rpc.Status``, with ``RetryInfo`` where the request should come again."""
        status = Status(code=int(self.code), message=str(self))
        if self.retry_after_seconds is not None:
            delay = Duration(seconds=self.retry_after_seconds)
            status.details.add().Pack(RetryInfo(retry_delay=delay))
        return status

    def body(self, encoding: Encoding) -> bytes:
        """The status in the request's encoding."""
        if encoding == "protobuf":
            return bytes(self.status().SerializeToString())
        return json.dumps({"code": int(self.code), "message": str(self)}).encode()


def too_large(limit: int) -> RefusedError:
    """Over the limit, compressed or not: sending it again cannot help."""
    return RefusedError(
        Code.RESOURCE_EXHAUSTED,
        f"the request is larger than the limit of {limit} bytes; send smaller batches",
    )
