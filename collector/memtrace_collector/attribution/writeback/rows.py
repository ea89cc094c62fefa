"""Every delivery of a verdict, its bytes fixed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memtrace_collector.attribution.writeback.case_trace import case_trace
from memtrace_collector.attribution.writeback.evaluation import evaluation
from memtrace_collector.attribution.writeback.in_trace import in_trace
from memtrace_collector.attribution.writeback.marker import markers
from memtrace_collector.attribution.writeback.target import WriteBack
from memtrace_collector.attribution.writeback.told import Told
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.store.base import OutboxEntry


def entries(
    verdict: Mapping[str, Any],
    operations: Mapping[OperationKey, Operation],
    answer: Operation,
    *,
    now_ns: int,
    target: WriteBack,
) -> list[OutboxEntry]:
    """The rows of a stored verdict. Times and bytes are fixed here: a second delivery of a row is
    the same bytes.

    Args:
        verdict: JSON form with id, revision and case_trace.
        operations: the case's operations, for the decisive ones.
        answer: the flagged answer.
        now_ns: when the rows are written.
        target: what the destination takes.
    """
    told = Told(verdict=verdict, operations=operations, answer=answer, now_ns=now_ns, target=target)
    own = f"{told.case_id}/{told.revision}"
    rows = [_row(told, f"{own}/case", "traces", case_trace(told))]
    below_the_answer = in_trace(told)
    if below_the_answer is not None:
        rows.append(_row(told, f"{own}/attribution", "traces", below_the_answer))
    rows.append(_row(told, f"{own}/evaluation", "logs", evaluation(told)))
    signs = [_row(told, f"cause/{name}", "traces", payload) for name, payload in markers(told)]
    return rows + signs


def _row(told: Told, row_id: str, signal: str, payload: bytes) -> OutboxEntry:
    return OutboxEntry(
        id=row_id, case_id=told.case_id, revision=told.revision, signal=signal, payload=payload
    )
