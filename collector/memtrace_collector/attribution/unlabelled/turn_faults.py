"""Faults that an answer's own turn shows, whatever was needed: it searched nothing, or another
owner's memory, or with a query that lost the user's words; or its prompt was cut. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from memtrace_collector.attribution.carrying.bearing import Bearing
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, claim
from memtrace_collector.attribution.rules.found import author_of_query
from memtrace_collector.attribution.texts import text
from memtrace_collector.attribution.unlabelled.structure_only import structural_fault
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv

_FROM_MEMORY = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT, semconv.KIND_MESSAGE)
BEARS = 0.1
"""How well a value must fit the question for memory to have something on it."""
_MOST = 0.5
"""Share of the question's words whose loss makes a rewritten query ask something else."""
_CUT_FOR_ROOM = frozenset({"budget", "limit"})


def turn_faults(view: View, bearing: Bearing) -> Iterator[Finding]:
    """What is wrong with the turn, the earliest step first."""
    for found in (
        _failed_call(view),
        _not_searched(view, bearing),
        _searched_elsewhere(view),
        structural_fault(view),
        _lost_query(view, bearing),
        _cut_prompt(view, bearing),
    ):
        if found is not None:
            yield found


def _failed_call(view: View) -> Finding | None:
    failed = view.answer.error_type
    if not failed or view.reply:
        return None
    return Finding(
        error_type="unrelated",
        basis=(STRUCTURE,),
        claims=(claim(f"the answer's own call failed: {failed}", view.answer),),
    )


def _not_searched(view: View, bearing: Bearing) -> Finding | None:
    """No read in the turn, and nothing of memory in the prompt."""
    if view.reads or any(kind(ref) in _FROM_MEMORY for ref in view.shown):
        return None
    if not view.answer.parent_span_id and not view.turn:
        return None
    best = bearing.best(view.current_versions)
    if best is None or best[0] < BEARS:
        return None
    chats = [op for op in view.turn if op.step == semconv.STEP_ANSWER]
    op = chats[0] if chats else view.answer
    return Finding(
        error_type="not_searched",
        decisive=(op.key,),
        basis=(STRUCTURE,),
        claims=(claim("answered without reading memory, which held something", op),),
        window=view.window(op.start_ns, view.answer.end_ns, [view.answer, *view.turn]),
    )


def _searched_elsewhere(view: View) -> Finding | None:
    """No search of the turn looked into the graph that the answer belongs to."""
    searches = [op for op in view.reads if op.step == semconv.STEP_RETRIEVE]
    own = view.answer.graph_id
    if not searches or any(own in (op.graph_id, *op.reads) for op in searches):
        return None
    homes = {op.graph_id for ref in view.current_versions for op in view.producers(ref)}
    if own not in homes:
        return None
    searched = sorted({graph for op in searches for graph in (op.graph_id, *op.reads)})
    return Finding(
        error_type="wrong_scope",
        decisive=(searches[0].key,),
        first_wrong=next(iter(searches[0].delivered), None),
        basis=(STRUCTURE,),
        claims=(claim(f"searched {', '.join(searched)} only", searches[0]),),
        window=view.window(searches[0].start_ns, view.answer.end_ns, [view.answer, *view.turn]),
    )


def _lost_query(view: View, bearing: Bearing) -> Finding | None:
    for op in view.reads:
        for ref in op.inputs:
            author, written = author_of_query(view, ref), view.text(ref)
            if author is None or written is None or ref == view.query:
                continue
            lost = bearing.question - text.content_tokens(written)
            if bearing.share(lost) >= _MOST:
                return Finding(
                    error_type="bad_query",
                    decisive=(author.key,),
                    first_wrong=ref,
                    claims=(
                        claim("dropped most of the user's words", author, ref),
                        claim("was searched with it", op, ref),
                    ),
                )
    return None


def _cut_prompt(view: View, bearing: Bearing) -> Finding | None:
    """Something delivered is not in the prompt: an assembly dropped it, or it was not found there
    although others of the same read were."""
    maker = next(iter(view.assemblies), None)
    left = [ref for ref in view.delivered if ref not in view.shown and view.text(ref)]
    cut = [
        (op, entry.ref)
        for op in view.assemblies
        for entry in op.dropped
        if entry.reason in _CUT_FOR_ROOM or entry.ref in left
    ]
    if maker is not None:
        cut += [(maker, ref) for ref in left]
    elif view.shown and left:
        cut = [(view.answer, ref) for ref in left]
    best = bearing.best([ref for _, ref in cut])
    if best is None or best[0] == 0.0:
        return None
    op: Operation = next(op for op, ref in cut if ref == best[1])
    return Finding(
        error_type="cut_from_context",
        decisive=(op.key,),
        last_right=best[1],
        basis=(STRUCTURE, TEXT) if maker else ("inferred", STRUCTURE),
        claims=(claim("was delivered and is not in the prompt", op, best[1]),),
        window=view.window(op.start_ns, view.answer.end_ns, [op, view.answer]),
    )
