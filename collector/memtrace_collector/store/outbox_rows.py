"""Rows of the outbox as every case store keeps them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from memtrace_collector.store.base import OutboxEntry

PENDING, DELIVERED = "pending", "delivered"
DECLINED, ABANDONED = "declined", "abandoned"
_FIELDS = tuple(field.name for field in dataclasses.fields(OutboxEntry))


def entry_of(row: Sequence[Any]) -> OutboxEntry:
    """``row``: the fields in their order; the last error as text or UTF-8."""
    entry = dict(zip(_FIELDS, row))
    if isinstance(entry["last_error"], bytes):
        entry["last_error"] = entry["last_error"].decode()
    return OutboxEntry(**entry)


def state_after(retry_at_ns: int | None) -> str:
    """Of a row that did not arrive."""
    return ABANDONED if retry_at_ns is None else PENDING


def counts_of(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """``rows``: states and how many are in each."""
    return {PENDING: 0, DELIVERED: 0, ABANDONED: 0} | dict(rows)
