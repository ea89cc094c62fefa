"""gzip with a hard limit: streaming, several members, never more memory than allowed."""

from __future__ import annotations

import zlib

from memtrace_collector.receiver.refusal import Code, RefusedError, too_large

_GZIP_WINDOW = 31


class Inflater:
    """Decompresses chunk by chunk; at most ``limit`` bytes come out in all.

    Raises:
        RefusedError: not gzip, cut short, or larger than the limit.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._fed = False

    def feed(self, data: bytes) -> bytes:
        """What ``data`` adds to the decompressed body."""
        parts = []
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            self._fed = True
            part = self._decompress(data)
            self._size += len(part)
            if self._size > self._limit:
                raise too_large(self._limit)
            parts.append(part)
            data = self._member.unused_data
        return b"".join(parts)

    def finish(self) -> None:
        """Check that the last member was complete."""
        if self._fed and not self._member.eof:
            raise RefusedError(Code.INVALID_ARGUMENT, "the gzip body is cut short")

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._member.decompress(data, self._limit - self._size + 1)
        except zlib.error as error:
            message = f"the body is not valid gzip: {error}"
            raise RefusedError(Code.INVALID_ARGUMENT, message) from error
