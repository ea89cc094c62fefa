"""Digests by which rows are found, and names as they stand in rows. Pure."""

from __future__ import annotations

import functools
import hashlib

from memtrace_collector.store import encoding

_KEPT = 1 << 16


def name_bytes(name: str) -> bytes:
    """A name as it stands in a row: ``bytea`` holds every character, in the order of ``str``."""
    return name.encode()


@functools.lru_cache(maxsize=_KEPT)
def graph_key(tenant: str, graph_id: str) -> int:
    """The id of a graph, signed, 64 bits; who writes or reads checks whose it is."""
    return encoding.name_key(f"{len(tenant)} {tenant}{graph_id}")


@functools.lru_cache(maxsize=_KEPT)
def wide_key(name: str) -> bytes:
    """128-bit digest of a name of any length."""
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def response_key(response_id: str) -> bytes:
    return wide_key(f"response:{response_id}")


def conversation_key(conversation_id: str) -> bytes:
    return wide_key(f"conversation:{conversation_id}")
