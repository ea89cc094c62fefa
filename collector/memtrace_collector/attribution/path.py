"""The way the information took, hop by hop, for the case trace and the page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.descent import descent
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.view import READS, View
from memtrace_collector.attribution.findings import Finding
from memtrace_collector.attribution.verdict import MEMORY_STAGES, Hop
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_otel import semconv, variables

MAX_HOPS = 24
KINDS = {
    semconv.STEP_INGEST: "evidence",
    semconv.STEP_ADD: "evidence",
    semconv.STEP_EXTRACT: "extraction",
    semconv.STEP_DECIDE: "decision",
    semconv.STEP_CREATE: "write",
    semconv.STEP_UPDATE: "write",
    semconv.STEP_DELETE: "write",
    semconv.STEP_CONSOLIDATE: "write",
    semconv.STEP_REWRITE: "retrieval",
    semconv.STEP_RETRIEVE: "retrieval",
    semconv.STEP_RERANK: "retrieval",
    semconv.STEP_ASSEMBLE: "assembly",
    semconv.STEP_ANSWER: "answer",
}
"""The kind of hop that an operation of a step is; others are none."""
_ORDER = {name: place for place, name in enumerate(dict.fromkeys(KINDS.values()))}
_OF_A_TURN = (semconv.STEP_ASSEMBLE, semconv.STEP_ANSWER)
"""Who merely used the information for another reply is not on its way to this one."""
LATE = ("retrieval", "assembly", "answer")
"""Kinds of hops that come after all others, whatever the clocks say."""


def path(found: Sequence[tuple[Sought, Finding]]) -> tuple[Hop, ...]:
    """From the messages that said it to the answer; what each operation did to it.

    ``found``: the needed items that count, in causal order; an operation that is decisive for
    one of them is told with what it did to that one.
    """
    hops: dict[OperationKey, Hop] = {}
    for sought, finding in found:
        for op in {op.key: op for op in _stations(sought, finding)}.values():
            if op.step not in KINDS:
                continue
            known = hops.get(op.key)
            if known is None or (op.key in finding.decisive and not known.decisive):
                hops[op.key] = _hop(sought, finding, op)
    ordered = sorted(
        hops.items(),
        key=lambda item: (
            item[1].kind in LATE,
            item[1].time_ns,
            _ORDER[item[1].kind],
            item[0].span_id,
        ),
    )
    kept = {key for key, hop in ordered if hop.decisive or hop.kind == "answer"}
    others = [key for key, _ in ordered if key not in kept]
    kept.update(others[: max(0, MAX_HOPS - len(kept))])
    return tuple(hop for key, hop in ordered if key in kept)


def _stations(sought: Sought, finding: Finding) -> Iterable[Operation]:
    view = sought.view
    for source in sought.sources:
        yield from view.producers(source)[:1]
    lineage = descent(view, sought.sources) | {finding.last_right, finding.first_wrong} - {None}
    for op in view.operations:
        if not view.before(op):
            continue
        touched = {*op.outputs, *op.supersedes, *(d.target for d in op.decisions)}
        if op.step not in _OF_A_TURN:
            touched.update(op.inputs)
        if touched & lineage and op.step not in READS:
            yield op
    for key in finding.decisive:
        if key in view.case.operations:
            yield view.case.operations[key]
    yield from view.reads
    yield from view.assemblies
    yield view.answer


def _hop(sought: Sought, finding: Finding, op: Operation) -> Hop:
    view = sought.view
    decisive = op.key in finding.decisive
    versions = _versions(sought, finding, op)
    record = next(
        (variables.record_of(ref) for ref in versions if kind(ref) == semconv.KIND_MEMORY), ""
    )
    return Hop(
        kind="answer" if op.key == view.answer.key else KINDS[op.step],
        outcome=_outcome(sought, finding, op, decisive),
        operation=op.key,
        service=op.service,
        system=op.system,
        name=op.name,
        time_ns=op.start_ns,
        record=record,
        versions=versions,
        says=next((claim.says for claim in finding.claims if claim.span == op.key), ""),
        decisive=decisive,
    )


def _versions(sought: Sought, finding: Finding, op: Operation) -> tuple[str, ...]:
    named = (*op.outputs, *op.delivered, *op.supersedes, *(entry.ref for entry in op.dropped))
    telling = [
        ref
        for ref in named
        if ref in (finding.last_right, finding.first_wrong) or sought.holds(ref)
    ]
    return tuple(dict.fromkeys(telling or named))[:8]


def _outcome(sought: Sought, finding: Finding, op: Operation, decisive: bool) -> str:
    if decisive and finding.stage in MEMORY_STAGES:
        return "changed" if finding.first_wrong else "lost"
    out = op.delivered if op.step in READS else op.outputs
    if op.step == semconv.STEP_DECIDE and not out:
        return "kept" if not decisive else "lost"
    if sought.among(out):
        return "kept"
    if any(sought.holds(ref) is None for ref in out):
        return "unknown"
    return _lost_before_or_here(sought.view, op, out)


def _lost_before_or_here(view: View, op: Operation, out: tuple[str, ...]) -> str:
    if op.key == view.answer.key or not out:
        return "lost"
    return "changed" if kind(out[0]) in (semconv.KIND_FACT, semconv.KIND_MEMORY) else "lost"
