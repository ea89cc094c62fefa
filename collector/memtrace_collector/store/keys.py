"""Names as the narrow integer keys under which SQLite's rows are found, and references in both
engines.

A key only leads to candidates: what is found by it is checked against the operation itself.
CRC-32 therefore serves for names inside one graph, whose owner alone gains slow reads by making
them collide. Keys that lead across graphs and tenants are cryptographic digests.
"""

from __future__ import annotations

import functools
import hashlib
from binascii import crc32
from collections.abc import Iterable
from struct import pack, unpack

from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.references import acted_on, used_by

_HALF = 32
_HALF_MASK = (1 << _HALF) - 1
_SIGN = 1 << _HALF - 1
_MODULUS = 1 << 2 * _HALF
_KEYS_KEPT = 1 << 14
_MET = crc32(b"met")
_NUMBER_BITS = 36
"""Of an id: room for 68 billion rows in 134 million graphs. Statements have it in them."""
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1


def row_id(graph: int, number: int) -> int:
    """The id of a graph's row; those of one graph follow each other."""
    return graph << _NUMBER_BITS | number


def row_ids(graph: int) -> tuple[int, int]:
    """The least and the greatest id in a graph."""
    return row_id(graph, 0), row_id(graph, _NUMBER_MASK)


def graph_of(row: int) -> int:
    return row >> _NUMBER_BITS


def number_of(row: int) -> int:
    return row & _NUMBER_MASK


def record_key(record: str) -> int:
    """Of ``kind:id``: 32 bits, under which stands what acted on the record."""
    return crc32(record.encode())


def met_key(record: str) -> int:
    """Another :func:`record_key`, under which stands what merely met the record."""
    return crc32(record.encode(), _MET)


def ref_key(ref: str) -> int:
    """64 bits, of which the upper half is the record's: its versions lie together."""
    encoded = ref.encode()
    cut = encoded.rfind(b"@")
    record = crc32(encoded[:cut] if cut > 0 else encoded)
    key: int = record << _HALF | crc32(encoded[cut + 1 :])
    return key - _MODULUS if record >= _SIGN else key  # _signed, in line: this runs for each


def record_refs(record: str) -> tuple[int, int]:
    """The least and the greatest :func:`ref_key` of a record's versions."""
    lead = record_key(record) << _HALF
    return _signed(lead), _signed(lead | _HALF_MASK)


def span_key(tenant: str, trace_id: str, span_id: str) -> int:
    """64 bits, of which the upper half is the trace's: its spans lie together."""
    return _signed(_trace_key(tenant, trace_id) << _HALF | crc32(span_id.encode()))


def trace_spans(tenant: str, trace_id: str) -> tuple[int, int]:
    """The least and the greatest :func:`span_key` of a trace."""
    lead = _trace_key(tenant, trace_id) << _HALF
    return _signed(lead), _signed(lead | _HALF_MASK)


def name_key(tenant: str, kind: str, name: str) -> int:
    """64 bits for a name that is unique to a tenant."""
    return int.from_bytes(_digest(tenant, f"{kind} {name}", 8), "big", signed=True)


def use_keys(operation: Operation) -> bytes:
    """The records that the operation uses, packed: :func:`record_key` of those it acted on and
    :func:`met_key` of those it merely met."""
    acted = acted_on(operation)
    records = {_record_of(ref) for ref in acted}
    found = {*map(crc32, records)}
    if met := used_by(operation) - acted:
        found.update(crc32(record, _MET) for record in {_record_of(ref) for ref in met} - records)
    return pack(f"<{len(found)}I", *found)


def _record_of(ref: str) -> bytes:
    """As :func:`memtrace_otel.variables.record_of`, encoded: this runs for each reference."""
    encoded = ref.encode()
    cut = encoded.rfind(b"@")
    return encoded[:cut] if cut > 0 else encoded


def unpacked(keys: bytes) -> tuple[int, ...]:
    """The inverse of :func:`use_keys`."""
    return unpack(f"<{len(keys) // 4}I", keys)


def keys_of(records: Iterable[str]) -> tuple[set[int], set[int]]:
    """:func:`record_key` and :func:`met_key` of each."""
    records = set(records)
    return {record_key(each) for each in records}, {met_key(each) for each in records}


@functools.lru_cache(maxsize=_KEYS_KEPT)
def _trace_key(tenant: str, trace_id: str) -> int:
    return int.from_bytes(_digest(tenant, trace_id, 4), "big")


def _digest(tenant: str, name: str, size: int) -> bytes:
    return hashlib.blake2b(f"{len(tenant)} {tenant}{name}".encode(), digest_size=size).digest()


def _signed(key: int) -> int:
    """As SQLite's integers are; the order within one upper half stays."""
    return key - _MODULUS if key >> 63 else key
