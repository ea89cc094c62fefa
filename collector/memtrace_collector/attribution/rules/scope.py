"""The row *wrong_scope*: another memory was searched than the one that had it. Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.missed import missed_carriers
from memtrace_collector.attribution.carrying.needs import reply_content
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, claim
from memtrace_collector.attribution.texts import text
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv


def wrong_scope(sought: Sought) -> Finding | None:
    """Another graph, namespace or filter was searched, or another owner's record delivered."""
    view = sought.view
    missed = missed_carriers(sought)
    for op in view.reads:
        hidden = [
            entry.ref for entry in op.dropped if entry.reason == "filter" and entry.ref in missed
        ]
        if hidden:
            return _scope(sought, op, hidden[-1], None, "filtered it out")
    searched = _searched_elsewhere(view, missed)
    if searched is not None:
        op, graphs = searched
        return _scope(sought, op, missed[-1], None, f"searched {', '.join(graphs)} only")
    return _another_owners_record(sought, missed)


def _searched_elsewhere(
    view: View, missed: tuple[str, ...]
) -> tuple[Operation, tuple[str, ...]] | None:
    """The search of other memories than what was missed lies in, with their names.

    A search that names the memories it reads may stand in the owner's graph all the same: then
    what it brought or considered shows where it looked.
    """
    homes = {op.graph_id for ref in missed for op in view.producers(ref)}
    searches = [op for op in view.reads if op.step == semconv.STEP_RETRIEVE]
    if not homes or not searches:
        return None
    if homes.isdisjoint(graph for op in view.reads for graph in (op.graph_id, *op.reads)):
        return searches[0], _graphs_of(searches)
    met = {maker.graph_id for ref in view.candidates for maker in view.producers(ref)}
    if not met or not homes.isdisjoint(met) or not all(_reads_elsewhere(op) for op in searches):
        return None
    return searches[0], tuple(sorted(met))


def _graphs_of(searches: list[Operation]) -> tuple[str, ...]:
    return tuple(sorted({graph for op in searches for graph in (op.graph_id, *op.reads)}))


def _reads_elsewhere(op: Operation) -> bool:
    """Whether a search names memories that it reads, its own graph not among them."""
    return bool(op.reads) and op.graph_id not in op.reads


def _another_owners_record(sought: Sought, missed: tuple[str, ...]) -> Finding | None:
    view = sought.view
    content = reply_content(sought.need, view.reply) if view.reply else frozenset()
    if sought.among(view.shown) or not content:
        return None
    allowed = {graph for op in view.reads for graph in (op.graph_id, *op.reads)}
    for op in view.reads:
        for ref in op.delivered:
            homes = {maker.graph_id for maker in view.producers(ref)}
            said = view.text(ref)
            if homes and homes.isdisjoint(allowed) and said and text.coverage(content, [said]) == 1:
                return _scope(
                    sought,
                    op,
                    missed[-1] if missed else None,
                    ref,
                    "delivered another owner's record",
                )
    return None


def _scope(
    sought: Sought, op: Operation, right: str | None, wrong: str | None, says: str
) -> Finding:
    return Finding(
        error_type="wrong_scope",
        decisive=(op.key,),
        last_right=right,
        first_wrong=wrong,
        basis=(STRUCTURE,) if sought.by_descent else (STRUCTURE, TEXT),
        claims=(claim(says, op, wrong or right),),
    )
