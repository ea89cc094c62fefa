"""The two stores behind one processor: facts (rebuilt from the log at will) and cases.

Every implementation passes the same contract suite (``tests/contract/``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from memtrace_collector.graph.facts import Flag, Operation, OperationKey, SpanFacts
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.queue import Lease, QueuedCase, Schedule, SetAside
from memtrace_collector.store.verdicts import VerdictStore


class Applied(NamedTuple):
    """What a batch changed, for counters."""

    added: tuple[Operation, ...]
    """Operations that were not known before, each as it was first met."""
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


class ErasedFacts(NamedTuple):
    """How many facts an erasure took out of a fact store."""

    operations: int
    values: int
    flags: int


class FactStore(GraphReader, Protocol):
    """Operations, produced variables, values, flags and sequences of all graphs of a tenant.

    Every tenant's facts are written by :meth:`apply`; what else is asked of a store, is asked of
    one tenant (:meth:`for_tenant`).
    """

    tenant: str

    def for_tenant(self, tenant: str) -> FactStore:
        """The same store for another tenant; it shares the connections, and one
        :meth:`close` closes them for all."""
        ...

    def apply(self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition) -> Applied:
        """Apply facts of any tenant and move the projection cursor, all of it or nothing.

        Order-free and idempotent. ``cursor`` is the position after the last record read.
        """
        ...

    def erase(self, graph_id: str | None) -> ErasedFacts:
        """Remove a graph of the tenant, or (None) everything the tenant has, so that no byte of
        it is left in the store's files.

        A graph takes its operations, values and flags with it, also the flags that carry no graph
        and name one of its operations (:attr:`Operation.flag_targets`). The numbers of processes
        stay with a graph, so that its operations are not taken for lost ones, and go with a
        tenant. Idempotent: what was broken off is finished by another call. What is applied
        afterwards is new.
        """
        ...

    def expire_values(self, before_ns: int) -> int:
        """Remove the values of every tenant that are older; how many went.

        A value's time is the latest start of an operation that came with it. One that came with
        no operation is older than every time.
        """
        ...

    def tidy(self, seconds: float, /) -> bool:
        """Do work that was put off, for about so long; True while some is left.

        Reads are right without it, and faster with it. Called by whoever applies, when idle.
        """
        ...

    def cursor(self, name: str = "projection") -> LogPosition: ...

    def set_cursor(self, name: str, position: LogPosition) -> None: ...

    def first_position(self, keys: Iterable[OperationKey]) -> dict[OperationKey, LogPosition]:
        """Where each operation was first seen in the log: only that copy is forwarded.

        ``ELSEWHERE`` when that was in the log of another processor.
        """
        ...

    def changes(self, since: Change | None, limit: int = 1_000) -> Changes:
        """Flags and graphs that changed after ``since``, in the order of their last change.

        ``since``: None, or a place of another epoch: from the beginning. ``limit`` bounds each
        list, but what one batch changed stays together.
        """
        ...

    def flag_counts(self) -> dict[str, int]:
        """Flags by source."""
        ...

    def graph_hash(self, graph_id: str) -> str:
        """SHA-256 over the graph's facts in canonical order; equal for equal sets of spans."""
        ...

    def close(self) -> None: ...


DEFAULT_DESTINATION = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """One delivery to one destination; its bytes were fixed when the row was written."""

    id: str
    """Deterministic, and unique among the rows of a tenant and destination: a second write of
    the same row changes nothing."""
    case_id: str
    revision: int
    signal: str
    """``traces`` or ``logs``: which OTLP export request ``payload`` is."""
    payload: bytes
    destination: str = DEFAULT_DESTINATION
    attempts: int = 0
    not_before_ns: int = 0
    last_error: str = ""


class ErasedCases(NamedTuple):
    """How many rows an erasure took out of a case store."""

    tasks: int
    concerns: int
    verdicts: int
    outbox: int
    judgements: int = 0


class Longest(NamedTuple):
    """Since when, in nanoseconds since the Unix epoch; None: nothing waits."""

    case_ns: int | None = None
    """A flagged answer for its verdict."""
    delivery_ns: int | None = None
    """The delivery that was put down first, since its verdict was found."""

    @classmethod
    def of(cls, case_ns: int | None, created: str | None) -> Longest:
        """``created``: of that verdict, RFC 3339 in UTC."""
        if created is None:
            return cls(case_ns)
        found = datetime.fromisoformat(created.replace("Z", "+00:00"))
        return cls(case_ns, int(found.timestamp() * 1_000) * 1_000_000)


class CaseQueue(Protocol):
    """The queue of flagged answers (see :mod:`memtrace_collector.store.queue`).

    ``now_ns`` is always passed in: the store reads no clock. Every call is one transaction.
    """

    def announce(
        self,
        cases: Iterable[QueuedCase],
        graph_ids: Iterable[str],
        until: Change | None,
        now_ns: int,
    ) -> None:
        """Put flagged answers into the queue, due at once, also those that are there or set
        aside; make the cases due that these graphs concern; remember how far changes were read.
        """
        ...

    def read_until(self) -> Change | None:
        """How far changes were read, as the last :meth:`announce` said."""
        ...

    def take(self, worker: str, now_ns: int, lease_ns: int, limit: int = 1) -> list[Lease]:
        """Lease due cases, the longest due first; no two callers get the same."""
        ...

    def claim(self, case_id: str, worker: str, now_ns: int, lease_ns: int) -> Lease | None:
        """Lease this case, due or not, also when set aside; None while somebody has it."""
        ...

    def renew(self, worker: str, now_ns: int, lease_ns: int) -> int:
        """Prolong the leases of a worker that have not run out; how many there are."""
        ...

    def release(
        self,
        lease: Lease,
        schedule: Schedule,
        now_ns: int,
        verdict: dict[str, object] | None = None,
        outbox: Iterable[OutboxEntry] = (),
    ) -> bool:
        """Give a case back, with a verdict and its outbox rows if there is a new one. False,
        and no change, when the lease was lost, or somebody else stored that revision.
        """
        ...

    def resolve(self, lease: Lease, cases: Iterable[QueuedCase], now_ns: int) -> bool:
        """Put the answers that a flag turned out to name in the place of an unresolved one."""
        ...

    def fail(self, lease: Lease, error: str, retry_at_ns: int | None) -> bool:
        """Give a case back unjudged. ``retry_at_ns``: None sets it aside with the reason."""
        ...

    def queued(
        self, graph_id: str = "", after: QueuedCase | None = None, limit: int = 500
    ) -> list[QueuedCase]:
        """Flagged answers that are known, oldest answer first, the next after ``after``."""
        ...

    def unresolved(self, after: QueuedCase | None = None, limit: int = 500) -> list[QueuedCase]:
        """Flags without an answer, by id, the next after ``after``."""
        ...

    def waiting(self, limit: int = 500) -> list[QueuedCase]:
        """Flagged answers without a verdict so far, latest answer first."""
        ...

    def set_aside(self, graph_id: str = "", limit: int = 1_000) -> list[SetAside]:
        """Of one graph or (empty) of all, oldest answer first."""
        ...

    def queue_counts(self) -> dict[str, int]:
        """Cases by state."""
        ...


class CaseStore(CaseQueue, VerdictStore, Protocol):
    """Queue, verdicts and outbox of one tenant: transactional, small, never on the ingest path.

    ``now_ns`` is always passed in: the store reads no clock. A row of the outbox belongs to one
    destination, so that none holds up another.
    """

    tenant: str

    def for_tenant(self, tenant: str) -> CaseStore:
        """The same store for another tenant; it shares the connections, and one
        :meth:`close` closes them for all."""
        ...

    def tenants(self) -> list[str]:
        """Every tenant of whom there is a case, a verdict or a row of the outbox, sorted."""
        ...

    def cursor(self, name: str) -> LogPosition:
        """A place in the log, which all tenants share; ``START`` when it was never set."""
        ...

    def set_cursor(self, name: str, position: LogPosition) -> None: ...

    def erase(self, graph_id: str | None) -> ErasedCases:
        """Forget a graph, or (None) all of the tenant, so that no byte of it stays in a file.

        What was found about answers of other graphs with the help of this one goes too; they
        are due at once, to be judged without it. Who has a lease on such a case loses it.
        Cursors stay. Idempotent.
        """
        ...

    def save_verdict(self, verdict: dict[str, object], outbox: Iterable[OutboxEntry]) -> bool:
        """Store a verdict (JSON form, DESIGN 7) as its case's current one, with its outbox
        rows, in one transaction. False, and no change, when that revision exists.
        """
        ...

    def verdicts_without_outbox(self, after: str = "", limit: int = 100) -> list[dict[str, object]]:
        """Current revisions of which nothing was ever put into the outbox, by case id, the next
        after ``after``."""
        ...

    def enqueue(self, outbox: Iterable[OutboxEntry]) -> None:
        """Put rows into the outbox, in one transaction; those that are there stay as they are."""
        ...

    def outbox_due(
        self, now_ns: int, limit: int = 100, destination: str = DEFAULT_DESTINATION
    ) -> list[OutboxEntry]:
        """Pending rows of one destination, the longest due first, equals as they were put;
        also those that a sender has."""
        ...

    def outbox_take(
        self,
        sender: str,
        now_ns: int,
        lease_ns: int,
        limit: int = 1,
        destination: str = DEFAULT_DESTINATION,
    ) -> list[OutboxEntry]:
        """Lease rows of :meth:`outbox_due`: until the lease ends, or the row is delivered or has
        failed, no other sender gets it. What this sender has already comes again.
        """
        ...

    def outbox_delivered(
        self, entry_id: str, now_ns: int, destination: str = DEFAULT_DESTINATION
    ) -> None: ...

    def outbox_failed(
        self,
        entry_id: str,
        error: str,
        retry_at_ns: int | None,
        destination: str = DEFAULT_DESTINATION,
    ) -> None:
        """``retry_at_ns=None``: given up, kept with its reason and counted."""
        ...

    def outbox_declined(
        self, entry_id: str, reason: str, destination: str = DEFAULT_DESTINATION
    ) -> None:
        """The destination has no place for what this is: kept with the reason, without its
        payload, and never tried again."""
        ...

    def outbox_not_seen(
        self,
        entry_id: str,
        reason: str,
        retry_at_ns: int | None,
        destination: str = DEFAULT_DESTINATION,
    ) -> bool:
        """What was delivered cannot be seen at its destination: due again, with the reason as its
        last error, or (``retry_at_ns=None``) given up. False, and no change, when it is not there
        any more, not delivered, or without its payload.
        """
        ...

    def outbox_abandoned(self, limit: int = 1_000) -> list[OutboxEntry]:
        """Rows that were given up, of every destination, as they were put."""
        ...

    def outbox_reopen(self, now_ns: int) -> int:
        """Make the rows that were given up due again, as if never tried; how many."""
        ...

    def outbox_forget(self, before_ns: int, limit: int = 1_000) -> int:
        """Drop the payloads of rows delivered before then, so many at once; how many there
        were. The rows stay, so that nothing is sent a second time."""
        ...

    def outbox_counts(self) -> dict[str, int]:
        """Rows by state, of every destination: pending, delivered, abandoned, and declined where
        there are any."""
        ...

    def longest(self) -> Longest:
        """Since when that waits which waits longest."""
        ...

    def close(self) -> None: ...
