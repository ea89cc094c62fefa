"""What structure alone shows of an answer's own turn, when neither texts nor evidence are known.

A broken invariant in the turn (see :mod:`memtrace_collector.graph.invariants`) is a fault that
can be shown; whether it is what made the answer wrong cannot, and the score says so. Pure.
"""

from __future__ import annotations

from memtrace_collector.attribution.carrying.refs import is_deleted, kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, Finding, claim
from memtrace_collector.attribution.rules.found import ever_delivered
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv, variables

_RECORDS = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)
_WEIGHT = 0.7


def structural_fault(view: View) -> Finding | None:
    """A stale, deleted or foreign record that the turn's reads delivered, the first of them."""
    for op in view.reads:
        for ref in op.delivered:
            if kind(ref) in _RECORDS:
                found = _foreign(view, op, ref) or _outdated(view, op, ref)
                if found is not None:
                    return found
    return None


def _foreign(view: View, op: Operation, ref: str) -> Finding | None:
    if op.step != semconv.STEP_RETRIEVE:
        return None  # a reranking passes on what searches of other graphs were asked for
    homes = {maker.graph_id for maker in view.producers(ref)}
    if not homes or not homes.isdisjoint({op.graph_id, *op.reads}):
        return None
    return _fault("wrong_scope", op, None, ref, "delivered another owner's record")


def _outdated(view: View, op: Operation, ref: str) -> Finding | None:
    writes = view.case.histories.get(variables.record_of(ref), ())
    current = _in_force(writes, op)
    if current is None or current.version == ref or view.other_key(ref):
        return None
    if all(write.version != ref for write in writes):
        return None
    if is_deleted(current.version):
        return _fault("stale_retrieved", op, current.version, ref, "delivered a deleted record")
    if ever_delivered(view, current.version, op):
        return _fault("stale_retrieved", op, current.version, ref, "delivered an older version")
    return Finding(
        error_type="not_stored",
        decisive=(current.operation.key,),
        last_right=current.version,
        mechanism="write_failed",
        basis=(STRUCTURE,),
        weight=_WEIGHT,
        claims=(
            claim("wrote a version that no read ever delivers", current.operation, current.version),
            claim("still delivered the old one", op, ref),
        ),
        window=view.window(current.operation.start_ns, view.answer.end_ns, [op]),
    )


def _in_force(writes: tuple[Write, ...], op: Operation) -> Write | None:
    """The last write that was surely over when the read began."""
    over = [write for write in writes if write.operation.end_ns <= op.start_ns]
    return over[-1] if over else None


def _fault(error_type: str, op: Operation, right: str | None, wrong: str, says: str) -> Finding:
    return Finding(
        error_type=error_type,
        decisive=(op.key,),
        last_right=right,
        first_wrong=wrong,
        basis=(STRUCTURE,),
        weight=_WEIGHT,
        claims=(claim(says, op, wrong),),
    )
