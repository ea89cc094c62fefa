"""What our metrics say of a verdict that was stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memtrace_collector.attribution.writeback.identity import root_span_id
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.telemetry.metrics import Exemplar, Metrics

ABSTENTION = "insufficient_evidence"


def tell(metrics: Metrics, verdict: Mapping[str, Any], case: Case, *, is_sent: bool) -> None:
    """Count it. ``is_sent``: its case trace goes to where traces are, and is the exemplar."""
    exemplar = _case_trace(verdict) if is_sent else None
    tell_stored(metrics, verdict, case, exemplar)
    metrics.record("memtrace.verdict.score", verdict["score"], exemplar, stage=verdict["stage"])
    metrics.add("memtrace.lineage", 1, status=verdict["lineage"])
    if verdict["error_type"] == ABSTENTION:
        for missing in verdict["missing"]:
            metrics.add("memtrace.verdicts.abstained", 1, missing=missing)
    if verdict["replay"]:
        metrics.add("memtrace.replays", 1, result=verdict["replay"]["result"])


def tell_stored(
    metrics: Metrics, verdict: Mapping[str, Any], case: Case, exemplar: Exemplar | None = None
) -> None:
    """Count that it was stored, whoever found it."""
    metrics.add(
        "memtrace.verdicts.stored",
        1,
        exemplar,
        stage=verdict["stage"],
        type=verdict["error_type"],
        system=_system(verdict, case),
        method=verdict["method"],
    )


def _case_trace(verdict: Mapping[str, Any]) -> Exemplar:
    return Exemplar(verdict["case_trace"], root_span_id(verdict["id"], verdict["revision"]))


def _system(verdict: Mapping[str, Any], case: Case) -> str:
    """Of the first decisive operation; empty without one, or where its sender names none."""
    for named in verdict["decisive"]:
        operation = case.operations.get(OperationKey(named["traceId"], named["spanId"]))
        return operation.system if operation is not None else ""
    return ""
