"""gzip and zlib with a hard limit: streaming, several members, never more memory than allowed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import IntEnum

from memtrace_collector.receiver.refusal import Code, RefusedError, too_large

STEP_BYTES = 1 << 20
"""Most that comes out at once, so that a caller can count it and let others run in between."""


class Coding(IntEnum):
    """How a body is compressed, as zlib's window parameter."""

    GZIP = 31
    DEFLATE = 15


class Inflater:
    """Decompresses chunk by chunk; at most ``limit`` bytes come out in all.

    Raises:
        RefusedError: not of that coding, cut short, or larger than the limit.
    """

    def __init__(self, limit: int, coding: Coding = Coding.GZIP) -> None:
        self._limit = limit
        self._coding = coding
        self._size = 0
        self._member = zlib.decompressobj(coding)
        self._fed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` adds to the decompressed body, in steps of at most ``STEP_BYTES``."""
        while data:
            if self._member.eof:
                self._begin_member()
            self._fed = True
            part = self._decompress(data)
            self._size += len(part)
            if self._size > self._limit:
                raise too_large(self._limit)
            yield part
            data = self._member.unconsumed_tail or self._member.unused_data

    def finish(self) -> Iterator[bytes]:
        """What is still inside; checks that the last member was complete."""
        while self._fed and not self._member.eof:
            part = self._decompress(b"")
            if not part:
                raise RefusedError(Code.INVALID_ARGUMENT, "the compressed body is cut short")
            self._size += len(part)
            if self._size > self._limit:
                raise too_large(self._limit)
            yield part

    def _begin_member(self) -> None:
        """Only gzip has several members, one after another."""
        if self._coding is not Coding.GZIP:
            raise RefusedError(Code.INVALID_ARGUMENT, "something follows the compressed body")
        self._member = zlib.decompressobj(self._coding)

    def _decompress(self, data: bytes) -> bytes:
        most = min(STEP_BYTES, self._limit - self._size + 1)
        try:
            return self._member.decompress(data, most)
        except zlib.error as error:
            message = f"the body is not valid {self._coding.name.lower()}: {error}"
            raise RefusedError(Code.INVALID_ARGUMENT, message) from error


def coding_of(body: bytes) -> Coding | None:
    """How a gRPC message is compressed, by its first bytes; None: not at all.

    gRPC tells its receivers' applications nothing about it. No protobuf message begins as gzip does
    (there is no wire type 7), and an export request only as zlib does if it began with a field 15,
    which none has.
    """
    if body[:2] == b"\x1f\x8b":
        return Coding.GZIP
    if body[:1] == b"\x78" and len(body) > 1 and int.from_bytes(body[:2], "big") % 31 == 0:
        return Coding.DEFLATE
    return None
