"""The row *not_stored*: a fact had it, no record ever did. Pure."""

from __future__ import annotations

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, abstain, claim
from memtrace_collector.attribution.rules.first_stored import (
    facts_ever,
    is_kept_raw,
    makings,
    stored_or_open,
)
from memtrace_collector.graph.facts import Decision, Operation
from memtrace_otel import semconv

_WRITING_ACTIONS = frozenset({"ADD", "UPDATE"})


def not_stored(sought: Sought) -> Finding | None:
    """A fact carries it and no version ever does."""
    view = sought.view
    stored, open_refs = stored_or_open(sought)
    facts = sought.among(facts_ever(view))
    read = makings(sought)
    if not facts and is_kept_raw(read):
        facts = tuple(dict.fromkeys(making.source for making in read))
    if stored or not facts:
        return None
    if open_refs and not sought.by_descent:
        return abstain(*sought.why_open(open_refs))
    for fact in reversed(facts):
        found = _why_not_stored(sought, fact)
        if found is not None:
            return found
    return None


def _why_not_stored(sought: Sought, fact: str) -> Finding | None:
    view = sought.view
    users = [op for op in view.readers(fact) if view.before(op)]
    decides = [op for op in users if op.step == semconv.STEP_DECIDE and not op.composite]
    writes = [
        op
        for op in users
        if op.step in (semconv.STEP_CREATE, semconv.STEP_UPDATE) and not op.composite
    ]
    makers = view.producers(fact)
    choosers = [op for op in decides if _chose_not_to(op, fact)]
    adds = [
        add
        for op in (*decides, *makers)
        if (add := view.enclosing(op, semconv.STEP_ADD)) is not None
    ] + [op for op in users if op.step == semconv.STEP_ADD]
    candidates = choosers or writes or adds or decides
    if not candidates:
        return None
    op = candidates[-1]
    mechanism = _mechanism(op, fact)
    if op not in choosers and op not in writes:
        mechanism = mechanism or "write_failed"
        if mechanism == "write_failed" and not _seen_later(view, decides or makers):
            return abstain("gap", claims=[claim("is the last that was seen of it", op, fact)])
    return Finding(
        error_type="not_stored",
        decisive=(op.key,),
        last_right=fact,
        mechanism=mechanism,
        basis=(STRUCTURE,) if sought.by_descent else (STRUCTURE, TEXT),
        claims=(
            claim("was extracted", makers[0] if makers else None, fact),
            claim("is where it went no further", op, fact),
        ),
        window=view.window(op.start_ns, view.read_ns, [op, *decides, *view.writers()]),
    )


def _seen_later(view: View, stages: list[Operation]) -> bool:
    """Whether a later number of the process was seen: a write may follow the last one."""
    return all(
        view.case.closure.last_seen_ns.get(op.sequence.process, 0) > op.start_ns
        for op in stages[-1:]
        if op.sequence
    )


def _decisions_on(op: Operation, fact: str) -> list[Decision]:
    return [decision for decision in op.decisions if decision.fact == fact]


def _chose_not_to(op: Operation, fact: str) -> bool:
    """Whether a decision kept a fact out. Without a word on this fact, one that wrote other
    texts instead, or nothing at all, did."""
    if any(entry.ref == fact for entry in op.dropped):
        return True
    own = _decisions_on(op, fact)
    if own:
        return not any(decision.action in _WRITING_ACTIONS for decision in own)
    unnamed = [decision for decision in op.decisions if decision.fact is None]
    authored = [ref for ref in op.outputs if kind(ref) == semconv.KIND_FACT]
    written = sum(decision.action in _WRITING_ACTIONS for decision in unnamed)
    return (not op.decisions and not op.outputs) or (
        bool(unnamed) and fact not in authored and (written < len(op.inputs) or bool(authored))
    )


def _mechanism(op: Operation, fact: str) -> str | None:
    if any(entry.ref == fact and entry.reason == "dedup" for entry in op.dropped):
        return "dedup"
    decisions = _decisions_on(op, fact) or [
        decision for decision in op.decisions if decision.fact is None
    ]
    if op.error_type or any(decision.status == "failed" for decision in decisions):
        return "write_failed"
    return "noop" if any(decision.action == "NOOP" for decision in decisions) else None
