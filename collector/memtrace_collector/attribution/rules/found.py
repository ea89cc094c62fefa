"""Rows of the hop *found*: memory had it at the read; did the read bring it? Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.missed import missed_carriers
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.view import READS, View
from memtrace_collector.attribution.findings import (
    STRUCTURE,
    TEXT,
    Finding,
    Window,
    abstain,
    at,
    claim,
)
from memtrace_collector.attribution.rules.first_stored import versions_seen
from memtrace_collector.attribution.rules.not_updated import contradicting
from memtrace_collector.attribution.texts import text
from memtrace_collector.attribution.verdict import Decisive
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv, variables

_NO_RANKING = frozenset({"expired", "filter"})
"""Reasons that hid a candidate whatever its rank: rows of their own."""


def _basis(sought: Sought) -> tuple[str, ...]:
    return (STRUCTURE,) if sought.by_descent else (STRUCTURE, TEXT)


def not_searched(sought: Sought) -> Finding | None:
    """No retrieval or buffer read in the answer's turn."""
    view = sought.view
    missed = missed_carriers(sought)
    if not missed or view.reads or view.shown:
        return None
    if not view.answer.parent_span_id and not view.turn:
        return abstain(
            claims=[claim("it stands alone in its trace: a search may have run elsewhere")]
        )
    chats = [op for op in view.turn if op.step == semconv.STEP_ANSWER]
    op = chats[0] if chats else view.answer
    return Finding(
        error_type="not_searched",
        decisive=(op.key,),
        last_right=missed[-1],
        basis=_basis(sought),
        claims=(
            claim("was current", next(iter(view.producers(missed[-1])), None), missed[-1]),
            claim("answered without reading memory", op),
        ),
        window=view.window(
            op.start_ns if chats else view.answer.start_ns,
            view.answer.end_ns,
            [view.answer, *view.turn],
        ),
    )


def bad_query(sought: Sought) -> Finding | None:
    """The query was authored, and lost what the user's words had in common with the carrier."""
    view = sought.view
    missed = missed_carriers(sought)
    asked = view.question
    if not missed or asked is None or sought.by_descent:
        return None
    shared = _subject(view, missed) & text.content_tokens(asked)
    for op in view.reads:
        for ref in op.inputs:
            author = author_of_query(view, ref)
            written = view.text(ref)
            if author is None or written is None or ref == view.query:
                continue
            lost = shared - text.content_tokens(written)
            if lost and len(lost) >= len(shared) / 2:
                return Finding(
                    error_type="bad_query",
                    decisive=(author.key,),
                    last_right=missed[-1],
                    first_wrong=ref,
                    claims=(
                        claim(
                            f"dropped {_as_written(asked, lost)} from the user's words", author, ref
                        ),
                        claim("was searched with it", op, ref),
                    ),
                )
    return None


def _as_written(asked: str, tokens: frozenset[str]) -> str:
    found = [word.surface for word in text.words(asked) if word.token in tokens]
    return ", ".join(dict.fromkeys(found))


def _subject(view: View, refs: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*(text.content_tokens(view.text(ref) or "") for ref in refs))


def author_of_query(view: View, ref: str) -> Operation | None:
    if kind(ref) != semconv.KIND_QUERY:
        return None
    authored = (semconv.STEP_REWRITE, semconv.STEP_ANSWER)
    return next((op for op in view.producers(ref) if op.step in authored), None)


def unseen_writer(sought: Sought) -> Finding | None:
    """A version nobody was seen to write, or a decided write nobody was seen to make, stands
    between what is known and what was read: it cannot be judged."""
    view = sought.view
    missed = missed_carriers(sought)
    for carrier in missed:
        record = variables.record_of(carrier)
        for ref in view.delivered:
            if variables.record_of(ref) != record or ref == carrier or view.other_key(ref):
                continue
            if all(ref != write.version for write in view.case.histories.get(record, ())):
                reader = next(op for op in view.reads if ref in op.delivered)
                return abstain(
                    "unseen_writer", claims=[claim("was never seen written", reader, ref)]
                )
        decide = None if carrier in view.candidates else _unseen_change(view, record)
        if decide is not None:
            return abstain(
                "unseen_writer", claims=[claim("decided a change never seen made", decide, carrier)]
            )
    if missed or sought.reached:
        return None
    strangers = sought.among(ref for ref in versions_seen(view) if not view.producers(ref))
    return abstain("unseen_writer") if strangers else None


def _unseen_change(view: View, record: str) -> Operation | None:
    """A decision to change or delete a record after its last known write, without that write."""
    write = view.current(record)
    since = write.operation.start_ns if write else 0
    for op in view.operations:
        if op.step != semconv.STEP_DECIDE or not since < op.start_ns < view.read_ns:
            continue
        for decision in op.decisions:
            changes = decision.action in ("UPDATE", "DELETE") and decision.status != "failed"
            if changes and decision.target and variables.record_of(decision.target) == record:
                return op
    return None


def stale_retrieved(sought: Sought) -> Finding | None:
    """An older version of the carrier's record was delivered, and a later read delivers the new
    one; if none ever does, the write never took effect (*not_stored*)."""
    view = sought.view
    for carrier in reversed(missed_carriers(sought)):
        record = variables.record_of(carrier)
        versions = [write.version for write in view.histories.get(record, ())]
        older = [ref for ref in view.delivered if ref in versions and ref != carrier]
        write = view.current(record)
        if not older or write is None:
            continue
        reader = next(op for op in view.reads if older[0] in op.delivered)
        if ever_delivered(view, carrier, reader):
            return Finding(
                error_type="stale_retrieved",
                decisive=(reader.key,),
                last_right=carrier,
                first_wrong=older[0],
                mechanism=None,
                basis=(STRUCTURE,),
                claims=(
                    claim("had made this version current", write.operation, carrier),
                    claim("delivered an older version", reader, older[0]),
                ),
            )
        return Finding(
            error_type="not_stored",
            decisive=(write.operation.key,),
            last_right=_written_from(write.operation, carrier),
            mechanism="write_failed",
            basis=(STRUCTURE,),
            weight=0.8,
            claims=(
                claim("wrote a version that no read ever delivers", write.operation, carrier),
                claim("still delivered the old one", reader, older[0]),
            ),
            window=view.window(write.operation.start_ns, view.answer.end_ns, [reader]),
        )
    return None


def ever_delivered(view: View, ref: str, reader: Operation) -> bool:
    """Whether another read of the case delivered a version."""
    return any(
        ref in op.delivered and op.step in READS and op.key != reader.key
        for op in view.case.operations.values()
    )


def _written_from(write: Operation, version: str) -> str:
    facts = [ref for ref in write.inputs if kind(ref) in (semconv.KIND_FACT, semconv.KIND_MESSAGE)]
    return facts[0] if facts else version


def ranked_out(sought: Sought) -> Finding | None:
    """The carrier was a recorded candidate and did not make the cut (P5), the last one (P2)."""
    view = sought.view
    missed = missed_carriers(sought)
    for op in reversed(view.reads):
        for entry in op.dropped:
            carrier = view.version_at(entry.ref)
            if carrier in missed and entry.reason not in _NO_RANKING:
                decisive = moved_below(view, entry.ref, op)
                return Finding(
                    error_type="ranked_out",
                    decisive=(decisive.key,),
                    last_right=carrier,
                    mechanism="dedup" if entry.reason == "dedup" else None,
                    also=_also_not_updated(sought, missed),
                    basis=_basis(sought),
                    claims=(
                        claim(_ranking(entry.rank, entry.score, entry.reason, op), op, entry.ref),
                    ),
                )
    return None


def _ranking(rank: int | None, score: float | None, reason: str, op: Operation) -> str:
    parts = [f"was a candidate and cut ({reason}"]
    if rank is not None:
        parts.append(f", rank {rank}")
    if score is not None:
        parts.append(f", score {score:g}")
    limit = op.limits.get("k")
    return "".join(parts) + (f"; limit {limit})" if limit is not None else ")")


def moved_below(view: View, ref: str, cutter: Operation) -> Operation:
    """P5: the reranking that moved it from within the limit to beyond it, else who cut it.

    A reranking that cuts by an order of its own (P1) is the author of every place in it.
    """
    if cutter.step == semconv.STEP_RERANK and _orders_anew(view, cutter):
        return cutter
    limit = cutter.limits.get("k")
    k = limit if isinstance(limit, int) else len(cutter.delivered)
    within = False
    for op in view.reads:
        if op.key == cutter.key:
            break
        if ref not in op.delivered:
            continue
        rank = op.delivered.index(ref) + 1
        if within and rank > k and op.step == semconv.STEP_RERANK:
            return op
        within = rank <= k
    return cutter


def _orders_anew(view: View, cutter: Operation) -> bool:
    """Whether what a reranking kept stood in another order before it."""
    before = next((op for op in reversed(view.reads) if _precedes(op, cutter)), None)
    if before is None:
        return False
    kept = [ref for ref in before.delivered if ref in cutter.delivered]
    return kept != list(before.delivered[: len(kept)]) or kept != list(cutter.delivered)


def _precedes(op: Operation, cutter: Operation) -> bool:
    return op.start_ns < cutter.start_ns and not set(cutter.delivered).isdisjoint(op.delivered)


def _also_not_updated(sought: Sought, missed: tuple[str, ...]) -> tuple[Decisive, ...]:
    """A delivered older record that contradicts the carrier should have been superseded."""
    view = sought.view
    reply = view.reply
    if reply is None or text.declines(reply) or contradicting(sought, list(missed), reply) is None:
        return ()
    decides = [
        op
        for op in view.operations
        if op.step == semconv.STEP_DECIDE
        and any(view.same_call(op, write) for write in view.producers(missed[-1]))
    ]
    return tuple(at(op, "not_updated", missed[-1]) for op in decides[:1])


def not_retrieved(sought: Sought) -> Finding | None:
    """The carrier was current and never a candidate of the turn's reads."""
    view = sought.view
    missed = missed_carriers(sought)
    searches = [op for op in view.reads if op.step == semconv.STEP_RETRIEVE] or view.reads
    if not missed or not searches:
        return None
    if sought.open_among(view.delivered):
        return abstain(*sought.why_open(view.delivered))
    homes = {op.graph_id for ref in missed for op in view.producers(ref)}
    fitting = [op for op in searches if homes & {op.graph_id, *op.reads}] or searches
    return Finding(
        error_type="not_retrieved",
        decisive=(fitting[0].key,),
        last_right=missed[-1],
        also=(
            *(at(op, "not_retrieved", missed[-1]) for op in fitting[1:]),
            *_also_not_updated(sought, missed),
        ),
        basis=_basis(sought),
        weight=0.8 if any(op.truncated for op in fitting) else 1.0,
        window=_still_current(view, missed[-1]),
        claims=(
            claim("was current", next(iter(view.producers(missed[-1])), None), missed[-1]),
            claim("never considered it", fitting[0], missed[-1]),
        ),
    )


def _still_current(view: View, carrier: str) -> Window | None:
    """Where a change of the carrier's record must not have been lost: from its last known write
    to the read. Nowhere when a later read met the same version."""
    if any(
        carrier in (*op.delivered, *(entry.ref for entry in op.dropped))
        for op in view.case.operations.values()
        if op.step in READS and op.start_ns >= view.read_ns
    ):
        return None
    write = view.current(variables.record_of(carrier))
    since = write.operation.start_ns if write else 0
    return view.window(since, view.read_ns, view.writers())
