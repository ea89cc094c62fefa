"""Bytes of one log record: pure encoding and decoding, no I/O.

A segment is a plain sequence of frames, without a header of its own. A frame is a fixed head
(little endian), the tenant, the body::

    marker 4s | version u8 | kind u8 | tenant length u16 | body length u32 | time i64
    | CRC-32 of tenant and body u32 | CRC-32 of the head so far and of the frame's position u32

The position is part of the check: bytes that merely look like a frame (a body may hold
anything, another log included) are not one, wherever reading resumes after damage.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Literal, NamedTuple

from memtrace_collector.log.position import LogPosition

Signal = Literal["traces", "logs"]
Kind = Literal["traces", "logs", "control"]
"""``control``: an order to whoever reads the log (see ``log/control.py``). It comes from the
owner of the log; no request that is received can become one, and none is ever sent on."""
Encoding = Literal["protobuf", "json"]

MARKER = b"\xf5MTL"
VERSION = 1
MAX_BODY_BYTES = 2**31
MAX_TENANT_BYTES = 2**16 - 1

_HEAD = struct.Struct("<4sBBHIqI")
_CHECK = struct.Struct("<I")
_POSITION = struct.Struct("<QQ")
HEAD_BYTES = _HEAD.size + _CHECK.size

_KINDS: tuple[tuple[Kind, Encoding], ...] = (
    ("traces", "protobuf"),
    ("traces", "json"),
    ("logs", "protobuf"),
    ("logs", "json"),
    ("control", "json"),
)
"""By the number in the frame, which never changes its meaning."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One OTLP export request as it came in, or a control record.

    ``body``: the request's bytes, untouched but for the transport's compression.
    ``time_ns``: when it was received, nanoseconds since the Unix epoch.
    """

    tenant: str
    time_ns: int
    signal: Kind
    encoding: Encoding
    body: bytes


class Head(NamedTuple):
    """A decoded and verified frame head. Sizes in bytes."""

    signal: Kind
    encoding: Encoding
    tenant_bytes: int
    body_bytes: int
    time_ns: int
    payload_crc: int

    @property
    def frame_bytes(self) -> int:
        return HEAD_BYTES + self.tenant_bytes + self.body_bytes


def frame_bytes(record: LogRecord) -> int:
    """Size of the record's frame.

    Raises:
        ValueError: the tenant or the body is too long for one.
    """
    tenant_bytes = len(record.tenant.encode())
    if tenant_bytes > MAX_TENANT_BYTES or len(record.body) > MAX_BODY_BYTES:
        raise ValueError(f"too long for a log record: {tenant_bytes} + {len(record.body)} bytes")
    return HEAD_BYTES + tenant_bytes + len(record.body)


def encode(record: LogRecord, position: LogPosition) -> tuple[bytes, bytes]:
    """Head with tenant, and body, of the frame that will start at ``position``."""
    tenant = record.tenant.encode()
    payload_crc = zlib.crc32(record.body, zlib.crc32(tenant))
    kind = _KINDS.index((record.signal, record.encoding))
    head = _HEAD.pack(
        MARKER, VERSION, kind, len(tenant), len(record.body), record.time_ns, payload_crc
    )
    return head + _CHECK.pack(_head_crc(head, position)) + tenant, record.body


def decode_head(data: bytes, position: LogPosition) -> Head | None:
    """The head at ``position``, or None when these bytes are not an intact head."""
    if len(data) < HEAD_BYTES:
        return None
    marker, version, kind, tenant_bytes, body_bytes, time_ns, payload_crc = _HEAD.unpack_from(data)
    (check,) = _CHECK.unpack_from(data, _HEAD.size)
    intact = marker == MARKER and check == _head_crc(data[: _HEAD.size], position)
    if not intact or version != VERSION or kind >= len(_KINDS):
        return None
    signal, encoding = _KINDS[kind]
    return Head(signal, encoding, tenant_bytes, body_bytes, time_ns, payload_crc)


def decode_payload(head: Head, payload: bytes) -> LogRecord | None:
    """The record of a head and the bytes after it, or None when these are damaged."""
    if len(payload) != head.tenant_bytes + head.body_bytes:
        return None
    if zlib.crc32(payload) != head.payload_crc:
        return None
    tenant = payload[: head.tenant_bytes].decode()
    return LogRecord(tenant, head.time_ns, head.signal, head.encoding, payload[head.tenant_bytes :])


def _head_crc(head: bytes, position: LogPosition) -> int:
    return zlib.crc32(_POSITION.pack(*position), zlib.crc32(head))
