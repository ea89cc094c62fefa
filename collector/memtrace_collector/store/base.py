"""The two stores behind one processor: facts (rebuilt from the log at will) and cases.

Every implementation passes the same contract suite (``tests/contract/``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memtrace_collector.graph.facts import Flag, OperationKey, SpanFacts
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.log.position import LogPosition


class Applied(NamedTuple):
    """What a batch changed, for counters."""

    added: Mapping[tuple[str, str], int]
    """Operations that were not known before, by system and step."""
    duplicates: int
    conflicts: int


class Change(NamedTuple):
    """A place in a fact store's order of changes.

    ``epoch`` names the life of the store: facts that are rebuilt have another, in which older
    places mean nothing.
    """

    epoch: int
    number: int


@dataclass(frozen=True, slots=True)
class Changes:
    """What is new or different between two places."""

    flags: tuple[Flag, ...]
    graph_ids: tuple[str, ...]
    until: Change
    """Where to go on."""
    is_all: bool
    """Nothing was left out for the limit."""


class FactStore(GraphReader, Protocol):
    """Operations, produced variables, values, flags and sequences of all graphs of a tenant."""

    def apply(self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition) -> Applied:
        """Apply facts and move the projection cursor, in one transaction.

        Order-free and idempotent. ``cursor`` is the position after the last record read.
        """
        ...

    def cursor(self, name: str = "projection") -> LogPosition: ...

    def set_cursor(self, name: str, position: LogPosition) -> None: ...

    def first_position(self, keys: Iterable[OperationKey]) -> dict[OperationKey, LogPosition]:
        """Where each operation was first seen in the log: only that copy is forwarded."""
        ...

    def changes(self, since: Change | None, limit: int = 1_000) -> Changes:
        """Flags and graphs that changed after ``since``, in the order of their last change.

        ``since``: None, or a place of another epoch: from the beginning. ``limit`` bounds each
        list, but what one batch changed stays together.
        """
        ...

    def graph_hash(self, graph_id: str) -> str:
        """SHA-256 over the graph's facts in canonical order; equal for equal sets of spans."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """One delivery to one destination; its bytes were fixed when the row was written."""

    id: str
    """Deterministic: a second write of the same row changes nothing."""
    case_id: str
    revision: int
    signal: str
    """``traces`` or ``logs``: which OTLP export request ``payload`` is."""
    payload: bytes
    attempts: int = 0
    not_before_ns: int = 0
    last_error: str = ""


class CaseStore(Protocol):
    """Verdicts, leases and outbox: transactional, small, never on the ingest path.

    ``now_ns`` is always passed in: the store reads no clock.
    """

    def claim(self, case_id: str, worker: str, now_ns: int, lease_ns: int) -> bool:
        """Lease a case; False when another worker holds a lease that has not expired."""
        ...

    def release(self, case_id: str, worker: str) -> None: ...

    def save_verdict(self, verdict: dict[str, object], outbox: Iterable[OutboxEntry]) -> bool:
        """Store a verdict (JSON form, DESIGN 7) as its case's current one, with its outbox
        rows, in one transaction. False, and no change, when that revision exists.
        """
        ...

    def verdicts_without_outbox(self) -> list[dict[str, object]]:
        """Current revisions of which nothing was ever put into the outbox."""
        ...

    def enqueue(self, outbox: Iterable[OutboxEntry]) -> None:
        """Put rows into the outbox, in one transaction; those that are there stay as they are."""
        ...

    def verdict(self, case_id: str) -> dict[str, object] | None:
        """The current revision."""
        ...

    def verdicts(self, graph_id: str | None = None) -> list[dict[str, object]]:
        """Current revisions, oldest first."""
        ...

    def outbox_due(self, now_ns: int, limit: int = 100) -> list[OutboxEntry]: ...

    def outbox_delivered(self, entry_id: str, now_ns: int) -> None: ...

    def outbox_failed(self, entry_id: str, error: str, retry_at_ns: int | None) -> None:
        """``retry_at_ns=None``: given up, kept with its reason and counted."""
        ...

    def outbox_counts(self) -> dict[str, int]:
        """Rows by state: pending, delivered, abandoned."""
        ...

    def close(self) -> None: ...
