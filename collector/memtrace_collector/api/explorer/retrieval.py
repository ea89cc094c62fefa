"""A read as the page shows it: its candidates, what beat the right one, what became of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memtrace_collector.api.explorer.shown import MAX_CANDIDATE, RIGHT, Shown
from memtrace_collector.api.questions import Json
from memtrace_collector.graph import receipt
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.receipt import CUT, Candidate, Read
from memtrace_otel import semconv, variables

MAX_CANDIDATES = 40


def reads_of(case: Case) -> Mapping[OperationKey, Read]:
    """The reads of the answer's turn."""
    return {read.operation.key: read for read in receipt.receipt(case)}


def read_json(
    operation: Operation, read: Read | None, shown: Shown, missed: Iterable[str] = ()
) -> Json:
    """One retrieval.

    Args:
        operation: what delivered or cut something.
        read: it in the receipt of the answer; None: it is not of the answer's turn.
        shown: the texts.
        missed: references that it should have considered; named when it did not.

    Returns:
        ``queries``, ``limits``, ``score_kind``, ``candidates`` (values with ``rank``, ``score``,
        ``outcome``, ``reason``, ``used``, and ``beat``: the right one was cut and this was not),
        ``left_out`` (how many are not shown), ``never_considered``.
    """
    candidates = (read or receipt.read_alone(operation)).candidates
    considered = {variables.record_of(item.ref) for item in candidates}
    never = [ref for ref in missed if variables.record_of(ref) not in considered]
    kept = _kept(candidates, shown)
    is_beaten = any(item.outcome == CUT and shown.role(item.ref) == RIGHT for item in candidates)
    return {
        "queries": [shown.value(ref) for ref in operation.inputs if _is_query(ref)],
        "limits": dict(operation.limits),
        "score_kind": operation.score_kind,
        "candidates": [_candidate_json(item, shown, is_beaten) for item in kept],
        "left_out": len(candidates) - len(kept),
        "never_considered": [shown.value(ref) for ref in never],
    }


def _kept(candidates: tuple[Candidate, ...], shown: Shown) -> list[Candidate]:
    """The first ones, and those that matter to the failure wherever they stand."""
    first = set(range(MAX_CANDIDATES))
    return [item for n, item in enumerate(candidates) if n in first or shown.role(item.ref)]


def _candidate_json(item: Candidate, shown: Shown, is_beaten: bool) -> Json:
    return {
        **shown.value(item.ref, MAX_CANDIDATE),
        "rank": item.rank,
        "score": item.score,
        "outcome": item.outcome,
        "reason": item.reason,
        "used": item.used,
        "beat": is_beaten and item.outcome != CUT and shown.role(item.ref) != RIGHT,
    }


def _is_query(ref: str) -> bool:
    return ref.startswith(f"{semconv.KIND_QUERY}:")
