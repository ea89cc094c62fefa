"""Rows of the hop *kept*: a record had it; did it still at the read? Pure."""

from __future__ import annotations

from typing import NamedTuple

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.once import once
from memtrace_collector.attribution.carrying.refs import is_deleted, kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, abstain, at, claim
from memtrace_collector.attribution.rules.first_stored import left_out
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv, variables


class Loss(NamedTuple):
    """A write after which a record no longer carried the item."""

    before: Write
    after: Write

    @property
    def at_ns(self) -> int:
        return self.after.operation.start_ns


@once
def losses(sought: Sought) -> list[Loss]:
    """Per record the write that ended its last carrier, earliest first."""
    found = []
    for record, writes in sought.view.histories.items():
        carrying = [n for n, write in enumerate(writes) if sought.holds(write.version)]
        if carrying and carrying[-1] + 1 < len(writes):
            found.append(Loss(writes[carrying[-1]], writes[carrying[-1] + 1]))
        if not carrying:
            first = writes[0]
            found.extend(
                Loss(Write(ref, first.operation), first)  # its own writer was not seen
                for ref in first.operation.supersedes
                if variables.record_of(ref) == record and sought.holds(ref)
            )
    return sorted(found, key=lambda loss: loss.at_ns)


@once
def still_carried(sought: Sought) -> bool:
    """Whether any value current at the read carries it, or one was delivered all the same."""
    return sought.reached or bool(sought.among(sought.view.current_versions))


def _last_loss(sought: Sought) -> tuple[Loss, list[Loss]] | None:
    if still_carried(sought):
        return None
    found = losses(sought)
    return (found[-1], found[:-1]) if found else None


def _text_version(ref: str) -> str:
    return variables.text_version(variables.version_of(ref))


def chooser(view: View, loss: Loss, action: str) -> Operation | None:
    """The decision that chose what a write did to a record (P1)."""
    record = variables.record_of(loss.before.version)
    target_known = [
        op
        for op in view.operations
        if op.step == semconv.STEP_DECIDE
        and view.same_call(op, loss.after.operation)
        and any(
            decision.action == action
            and decision.target
            and variables.record_of(decision.target) == record
            for decision in op.decisions
        )
    ]
    parents = view.case.parents.get(loss.after.operation.key, ())
    by_parent = [op for op in target_known if op.key in parents]
    return next(iter((by_parent or target_known)[-1:]), None)


def _text_author(view: View, loss: Loss) -> tuple[Operation | None, str | None]:
    """Who authored the text that replaced the carrier: ``(decision, its fact)`` when it was
    newly written by one, ``(None, None)`` otherwise."""
    digest = _text_version(loss.after.version)
    for ref in loss.after.operation.inputs:
        if kind(ref) == semconv.KIND_FACT and _text_version(ref) == digest:
            makers = view.producers(ref)
            if any(op.step in (semconv.STEP_EXTRACT, semconv.STEP_ANSWER) for op in makers):
                return None, None
            for op in makers:
                if op.step == semconv.STEP_DECIDE:
                    return op, ref
    return None, None


def _from_an_extraction(view: View, loss: Loss) -> bool:
    """P8: the new text is a fact that an extraction (or a tool call) produced, or a message."""
    digest = _text_version(loss.after.version)
    known = {
        _text_version(ref)
        for op in view.operations
        if op.step in (semconv.STEP_EXTRACT, semconv.STEP_ANSWER, semconv.STEP_INGEST)
        for ref in op.outputs
        if kind(ref) in (semconv.KIND_FACT, semconv.KIND_MESSAGE)
    }
    known |= {
        _text_version(ref)
        for ref in loss.after.operation.inputs
        if kind(ref) == semconv.KIND_MESSAGE
        or (kind(ref) == semconv.KIND_FACT and _came_to_a_decision(view, ref))
    }
    return digest in known


def _came_to_a_decision(view: View, fact: str) -> bool:
    """A fact nobody was seen to produce, but that a decision read: it was extracted before."""
    return not view.producers(fact) and any(
        op.step == semconv.STEP_DECIDE for op in view.readers(fact)
    )


def _author_unseen(view: View, loss: Loss) -> bool:
    """The new text is a fact of which neither producer nor decision was seen."""
    digest = _text_version(loss.after.version)
    return any(
        kind(ref) == semconv.KIND_FACT
        and _text_version(ref) == digest
        and not view.producers(ref)
        and not _came_to_a_decision(view, ref)
        for ref in loss.after.operation.inputs
    )


def _is_race(loss: Loss) -> bool:
    """The write replaced an earlier base than the version it destroyed."""
    replaced = [
        ref
        for ref in loss.after.operation.supersedes
        if variables.record_of(ref) == variables.record_of(loss.before.version)
    ]
    return (
        bool(replaced)
        and loss.before.version not in replaced
        and not any(variables.version_of(ref) == semconv.UNKNOWN_VERSION for ref in replaced)
    )


def _lost_by(sought: Sought, error_type: str, action: str) -> Finding | None:
    """The finding for the last loss, when it is of this type."""
    found = _last_loss(sought)
    if found is None or _type_of(sought, found[0]) != error_type:
        return None
    loss, earlier = found
    view = sought.view
    if loss.after.version in sought.kin and sought.holds(loss.after.version) is None:
        return abstain(*sought.why_open([loss.after.version]))
    if _author_unseen(view, loss):
        return abstain("unseen_writer")
    author, authored = _text_author(view, loss)
    author = author or chooser(view, loss, action) or loss.after.operation
    if error_type == "compacted_away" or _is_race(loss):
        author, authored = loss.after.operation, None
    wrong = authored if authored and error_type == "merged_wrong" else loss.after.version
    maker = next(iter(view.producers(loss.before.version)), None)
    also = tuple(
        at(
            chooser(view, other, action) or other.after.operation,
            _type_of(sought, other),
            other.before.version,
            other.after.version,
        )
        for other in earlier
    )
    return Finding(
        error_type=error_type,
        decisive=(author.key,),
        last_right=loss.before.version,
        first_wrong=wrong,
        aspect="time" if sought.item.temporal else None,
        mechanism="race" if _is_race(loss) else None,
        also=(*also, *left_out(sought)),
        basis=(STRUCTURE,) if sought.by_descent else (STRUCTURE, TEXT),
        claims=(
            claim("was stored", maker, loss.before.version),
            claim("chose or wrote what replaced it", author, wrong)
            if author.key != loss.after.operation.key
            else claim("replaced it", author, wrong),
        ),
    )


def _type_of(sought: Sought, loss: Loss) -> str:
    step = loss.after.operation.step
    if step == semconv.STEP_CONSOLIDATE:
        return "compacted_away"
    if is_deleted(loss.after.version):
        return "wrongly_deleted"
    if _text_version(loss.before.version) == _text_version(loss.after.version):
        return "merged_wrong"
    return (
        "overwritten"
        if _is_race(loss) or _from_an_extraction(sought.view, loss)
        else "merged_wrong"
    )


def overwritten(sought: Sought) -> Finding | None:
    """The carrier was superseded by text that an extraction produced (P8)."""
    return _lost_by(sought, "overwritten", "UPDATE")


def merged_wrong(sought: Sought) -> Finding | None:
    """The carrier was superseded by newly written text (P8)."""
    return _lost_by(sought, "merged_wrong", "UPDATE")


def compacted_away(sought: Sought) -> Finding | None:
    """Lost in a summary, merge, trim or forgetting."""
    found = _lost_by(sought, "compacted_away", "UPDATE")
    return found or _trimmed(sought)


def _trimmed(sought: Sought) -> Finding | None:
    """A consolidation that superseded a carrier and wrote none into any other record."""
    if still_carried(sought):
        return None
    view = sought.view
    for op in reversed(view.operations):
        if op.step != semconv.STEP_CONSOLIDATE or not view.before(op):
            continue
        gone = sought.among([*op.supersedes, *op.inputs])
        if gone and not sought.among(op.outputs):
            if sought.open_among(ref for ref in op.outputs if not is_deleted(ref)):
                return abstain(*sought.why_open(op.outputs))
            wrong = next((ref for ref in op.outputs if not is_deleted(ref)), None)
            return Finding(
                error_type="compacted_away",
                decisive=(op.key,),
                last_right=gone[-1],
                first_wrong=wrong,
                claims=(claim("read it and kept something else", op, gone[-1]),),
            )
    return None


def wrongly_deleted(sought: Sought) -> Finding | None:
    """The carrier was deleted, or expired, before the read."""
    return _lost_by(sought, "wrongly_deleted", "DELETE") or _expired(sought)


def _expired(sought: Sought) -> Finding | None:
    view = sought.view
    expired = [
        (op, entry.ref)
        for op in view.reads
        for entry in op.dropped
        if entry.reason == "expired" and sought.holds(entry.ref)
    ]
    if not expired or sought.among(view.delivered):
        return None
    reader, ref = expired[0]
    writers = view.producers(ref)
    if not writers:
        return abstain("unseen_writer", claims=[claim("found it expired", reader, ref)])
    return Finding(
        error_type="wrongly_deleted",
        decisive=(writers[-1].key,),
        last_right=ref,
        mechanism="expired",
        basis=(STRUCTURE,) if sought.by_descent else (STRUCTURE, TEXT),
        claims=(claim("set the expiry that hid it from the read", writers[-1], ref),),
    )
