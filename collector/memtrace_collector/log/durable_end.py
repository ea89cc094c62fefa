"""The durable end of a log, shared with readers in other processes through a small file.

A record is visible in its segment before it is on disk; readers stop here so that nothing is
built on bytes that a power loss may take back. The file needs no sync: after a crash the
owner computes the end again from the segments.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from pathlib import Path

from memtrace_collector.log.position import LogPosition

FILE_NAME = "end"
_END = struct.Struct("<QQ")
_CHECK = struct.Struct("<I")
_TORN_READS = 100


class DurableEnd:
    """Writer's side: publishes positions in one ``pwrite`` each."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def publish(self, position: LogPosition) -> None:
        data = _END.pack(*position)
        os.pwrite(self._fd, data + _CHECK.pack(zlib.crc32(data)), 0)

    def close(self) -> None:
        os.close(self._fd)


def read_durable_end(folder: Path) -> LogPosition | None:
    """The published end; None when the folder has none (then all intact records count)."""
    with contextlib.suppress(FileNotFoundError):
        for _ in range(_TORN_READS):
            data = (folder / FILE_NAME).read_bytes()
            if len(data) != _END.size + _CHECK.size:
                return None
            if _CHECK.unpack_from(data, _END.size)[0] == zlib.crc32(data[: _END.size]):
                return LogPosition(*_END.unpack_from(data))
    return None
