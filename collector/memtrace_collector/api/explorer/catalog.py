"""Every view of the page by its name, which is also its path below ``/api/v1/view/``."""

from __future__ import annotations

from collections.abc import Mapping

from memtrace_collector.api.explorer import (
    drawing,
    failure,
    failures,
    graphs,
    impact,
    invariants,
    judging,
    operation,
    record,
    why,
)
from memtrace_collector.api.explorer.view import View

VIEWS: Mapping[str, View] = {
    "answer": failure.answer,
    "failure": failure.failure,
    "failures": failures.failures,
    "graph": drawing.drawing,
    "graph-answers": graphs.answers,
    "graphs": graphs.graphs,
    "impact": impact.impact,
    "invariants": invariants.invariants,
    "judging": judging.judging,
    "operation": operation.one_operation,
    "record": record.record,
    "why": why.why,
}
