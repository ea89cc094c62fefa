"""Rows in the binary form that ``COPY`` takes: made in C by :mod:`struct`, not value by value.

https://www.postgresql.org/docs/15/sql-copy.html, "Binary Format": each row says how many fields
it has, each field how many bytes; integers are big-endian.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memtrace_collector.graph.facts import Operation, Value
from memtrace_collector.graph.reader import SequenceNumber
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store import encoding
from memtrace_collector.store.keys import ref_key
from memtrace_collector.store.postgres import keys
from memtrace_collector.store.postgres.database import Connection

if TYPE_CHECKING:
    from typing_extensions import LiteralString

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_TRACE_BYTES, _SPAN_BYTES = 16, 8
_INT4 = 23
"""The OID of ``int``."""
_NO_KEYS = struct.pack("!iiii", 12, 0, 0, _INT4)
_SIZE = struct.Struct("!i")
_OPERATION = struct.Struct("!hiqiqiqiqi16si8si")
_USED = struct.Struct("!hiqiqiqi16si8s")
_PRODUCED = struct.Struct("!hiqiqiq")
_SPAN = struct.Struct("!i16si8siqiqiiiqiq")
_NAMED = struct.Struct("!i16siqiq")
_VALUE = struct.Struct("!hiqi16siqi")
_VALUE_STATE = struct.Struct("!iqi?i?i")
_NUMBER = struct.Struct("!i16siqiqiqi?")
_KEY_BYTES = 16


def copy(connection: Connection, statement: LiteralString, rows: Iterable[bytes]) -> None:
    """Send rows to a ``COPY … FROM STDIN (FORMAT BINARY)``."""
    with connection.cursor() as cursor, cursor.copy(statement) as sink:
        sink.write(b"".join((_HEADER, *rows, _TRAILER)))


def span_ids(operation: Operation) -> tuple[bytes, bytes]:
    """Trace and span id as bytes.

    Raises:
        ValueError: not 16 and 8 bytes in hex.
    """
    trace, span = bytes.fromhex(operation.trace_id), bytes.fromhex(operation.span_id)
    if len(trace) != _TRACE_BYTES or len(span) != _SPAN_BYTES:
        raise ValueError(f"{operation.key} is not the identity of a span")
    return trace, span


def operation_row(graph: int, number: int, operation: Operation) -> bytes:
    trace, span = span_ids(operation)
    body = encoding.operation_body(operation)
    times = (8, operation.start_ns, 8, operation.end_ns)
    return _OPERATION.pack(7, 8, graph, 8, number, *times, 16, trace, 8, span, len(body)) + body


def used_row(
    graph: int, number: int, operation: Operation, acted: Sequence[int], met: Sequence[int]
) -> bytes:
    trace, span = span_ids(operation)
    head = _USED.pack(7, 8, graph, 8, number, 8, operation.start_ns, 16, trace, 8, span)
    return head + _numbers(acted) + _numbers(met)


def produced_row(graph: int, number: int, ref: str) -> bytes:
    return _PRODUCED.pack(3, 8, graph, 8, ref_key(ref), 8, number)


def span_row(
    graph: int, number: int, operation: Operation, log: int, position: LogPosition
) -> bytes:
    trace, span = span_ids(operation)
    ids = (16, trace, 8, span, 8, graph, 8, number)
    return _first(8, operation.tenant) + _SPAN.pack(*ids, 4, log, 8, position[0], 8, position[1])


def named_row(graph: int, number: int, tenant: str, name: bytes) -> bytes:
    return _first(4, tenant) + _NAMED.pack(_KEY_BYTES, name, 8, graph, 8, number)


def value_row(graph: int, number: int, value: Value, at_ns: int) -> bytes:
    content, ref = encoding.value_content(value), keys.name_bytes(value.ref)
    head = _VALUE.pack(8, 8, graph, _KEY_BYTES, keys.wide_key(value.ref), 8, number, len(ref))
    state = _VALUE_STATE.pack(8, at_ns, 1, value.cut, 1, value.verified, len(content))
    return head + ref + state + content


def number_row(tenant: str, number: SequenceNumber) -> bytes:
    process = keys.wide_key(number.process)
    times = (8, number.start_ns, 8, number.end_ns, 1, number.farewell)
    return _first(6, tenant) + _NUMBER.pack(_KEY_BYTES, process, 8, number.number, *times)


@functools.lru_cache(maxsize=1_024)
def _first(fields: int, tenant: str) -> bytes:
    """The beginning of a row whose first field is the tenant."""
    name = keys.name_bytes(tenant)
    return struct.pack("!hi", fields, len(name)) + name


def _numbers(numbers: Sequence[int]) -> bytes:
    """``int[]``, of numbers without sign: size, dimensions, has nulls, type, then length and
    lower bound, then each."""
    if not numbers:
        return _NO_KEYS
    count = len(numbers)
    sized = [part for number in numbers for part in (4, number)]
    return _array(count).pack(20 + 8 * count, 1, 0, _INT4, count, 1, *sized)


@functools.lru_cache(maxsize=1_024)
def _array(count: int) -> struct.Struct:
    return struct.Struct("!6i" + "iI" * count)
