"""From what changed in the graphs to the queue of cases, a part at a time."""

from __future__ import annotations

import hashlib
import threading

from memtrace_collector.graph import flags
from memtrace_collector.graph.facts import Flag, Operation
from memtrace_collector.store.base import CaseStore, FactStore
from memtrace_collector.store.queue import QueuedCase

PART = 500
"""Flags and graphs read at once: what is held in memory, whatever there is."""
PARTS = 10
"""After so many parts some cases are looked at before the reading goes on."""


def case_id(answer: Operation) -> str:
    """Deterministic: one case per tenant and answer span, 32 hex digits."""
    return _digest(answer.tenant, answer.trace_id, answer.span_id)


def queued(answer: Operation) -> QueuedCase:
    """A flagged answer as the queue has it."""
    return QueuedCase(
        case_id=case_id(answer),
        trace_id=answer.trace_id,
        span_id=answer.span_id,
        graph_id=answer.graph_id,
        answered_ns=answer.start_ns,
    )


def flag_named_by(case: QueuedCase) -> Flag:
    """What an unresolved case is waiting for, as a flag to be resolved."""
    return Flag(
        trace_id=case.trace_id,
        span_id=case.span_id,
        response_id=case.response_id,
        conversation_id=case.conversation_id,
    )


def read_changes(
    reader: FactStore, cases: CaseStore, now_ns: int, stop: threading.Event | None = None
) -> bool:
    """Bring the queue up to date, by at most :data:`PARTS`; whether that was everything.

    What is left out, also because ``stop`` is set, is read the next time.
    """
    since = cases.read_until()
    for _ in range(PARTS):
        if stop is not None and stop.is_set():
            return False
        changes = reader.changes(since, PART)
        if changes.until != since:
            found = [_meant(reader, flag) for flag in changes.flags]
            cases.announce(found, changes.graph_ids, changes.until, now_ns)
        if changes.is_all:
            return True
        since = changes.until
    return False


def _meant(reader: FactStore, flag: Flag) -> QueuedCase:
    answer = flags.resolve(reader, flag)
    if answer is not None:
        return queued(answer)
    return QueuedCase(
        case_id=_digest("unresolved", flag.tenant, flag.target, flag.span_id),
        trace_id=flag.trace_id,
        span_id=flag.span_id,
        response_id=flag.response_id,
        conversation_id=flag.conversation_id,
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
