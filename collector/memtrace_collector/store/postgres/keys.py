"""Digests by which rows are found, and names as they stand in rows. Pure.

They are stored: another digest needs another version of the tables. Records and versions are
found by CRC-32, for what is found is checked against the operation itself, and who makes names
collide slows down the reads of no graph but his own. All else is found by cryptographic digests.
Keys of references are those of :mod:`memtrace_collector.store.keys`.
"""

from __future__ import annotations

import functools
import hashlib
from binascii import crc32
from collections.abc import Iterable

from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.references import acted_on, used_by

_KEPT = 1 << 16


def name_bytes(name: str) -> bytes:
    """A name as it stands in a row: ``bytea`` holds every character, in the order of ``str``."""
    return name.encode()


@functools.lru_cache(maxsize=_KEPT)
def graph_key(tenant: str, graph_id: str) -> int:
    """The id of a graph, 64 bits; who writes or reads checks whose it is."""
    name = f"{len(tenant)} {tenant}{graph_id}".encode()
    digest = hashlib.blake2b(name, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@functools.lru_cache(maxsize=_KEPT)
def wide_key(name: str) -> bytes:
    """128-bit digest of a name of any length."""
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def response_key(response_id: str) -> bytes:
    return wide_key(f"response:{response_id}")


def conversation_key(conversation_id: str) -> bytes:
    return wide_key(f"conversation:{conversation_id}")


def record_key(record: str) -> int:
    """Of ``kind:id``: 32 bits."""
    return signed(crc32(record.encode()))


def use_keys(operation: Operation) -> tuple[list[int], list[int]]:
    """:func:`record_key`, unsigned, of the records it acted on, and of those it merely met."""
    acted = acted_on(operation)
    records = _records(acted)
    met = used_by(operation) - acted
    return list(map(crc32, records)), list(map(crc32, _records(met) - records)) if met else []


def signed(key: int) -> int:
    """A key of 32 bits as PostgreSQL's integers are."""
    return key - (1 << 32) if key >> 31 else key


def _records(refs: Iterable[str]) -> set[bytes]:
    """As :func:`memtrace_otel.variables.record_of`, encoded: this runs for each reference."""
    records = set()
    for ref in refs:
        encoded = ref.encode()
        cut = encoded.rfind(b"@")
        records.add(encoded[:cut] if cut > 0 else encoded)
    return records
