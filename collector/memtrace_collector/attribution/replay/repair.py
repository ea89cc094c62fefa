"""What putting the right value back means: from a verdict to changes of what was read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from memtrace_collector.attribution.carrying.refs import is_deleted, kind, sources_within
from memtrace_collector.attribution.carrying.view import READS, View
from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_otel import semconv, variables

PUT, REMOVE, DATE, AGAIN = "put", "remove", "date", "again"
MAX_RIGHT_CHARACTERS = 4_000
_MAX_DEPTH = 12

_NOTHING_TO_PUT_BACK = {
    "never_told": "nothing that memory was told could be put back",
    "bad_reference": "the reply is right: there is nothing to repair",
    "bad_judge": "the reply is right: there is nothing to repair",
    "unrelated": "no memory operation is at fault",
    "insufficient_evidence": "no operation was named",
}
_TAKES_AWAY = frozenset({"not_updated", "not_deleted", "invented"})
"""Types whose repair takes a wrong value away instead of putting a right one in."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One change of what this answer read.

    ``put`` the text of ``ref`` in, instead of the version ``replaces`` where that was read;
    ``remove`` the version ``replaces``; ``date``: write the values' own dates beside them;
    ``again``: no change, the same prompt once more. ``at``: the operation of the answer's own
    turn that the verdict names, where it does. ``assumed``: what had to be taken for granted.
    """

    kind: str
    ref: str = ""
    text: str = ""
    day: date | None = None
    replaces: str = ""
    at: OperationKey | None = None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a verdict cannot be replayed; ``missing`` is one word of the replay's ``missing``."""

    reason: str
    missing: str


def plan(view: View, finding: Mapping[str, Any]) -> tuple[Repair, ...] | Refusal:
    """The repairs that a verdict (JSON form) calls for, one per decisive operation."""
    error_type = finding["error_type"]
    if error_type in _NOTHING_TO_PUT_BACK or not finding["decisive"]:
        reason = _NOTHING_TO_PUT_BACK.get(error_type, "no operation was named")
        return Refusal(reason, "nothing_downstream")
    if view.question is None:
        return Refusal("the question was not captured", "no_content")
    repairs: list[Repair] = []
    for decisive in finding["decisive"]:
        repair = _repair(view, decisive)
        if isinstance(repair, Refusal):
            return repair
        repairs.append(repair)
    changing = [repair for repair in repairs if repair.kind != AGAIN]
    return tuple(dict.fromkeys(changing or repairs[:1]))


def _repair(view: View, decisive: Mapping[str, Any]) -> Repair | Refusal:
    error_type = decisive["error_type"]
    stage = STAGE_OF[error_type]
    if stage == "response":
        return Repair(AGAIN)
    at = OperationKey(decisive["traceId"], decisive["spanId"])
    right, wrong = decisive["last_right"] or "", decisive["first_wrong"] or ""
    if error_type in _TAKES_AWAY or not right:
        return _removal(view, wrong)
    if error_type == "garbled_in_context" and _stands_in_prompt(view, right):
        return Repair(DATE, at=at)
    content = view.text(right)
    if content is None:
        return Refusal("the text of the right value was not captured", "no_content")
    if view.is_cut(right):
        return Refusal("the right value was captured only in part", "cut")
    if len(content) > MAX_RIGHT_CHARACTERS:
        return Refusal("the right value is too long to stand for one memory", "cut")
    moment = view.moment(right)
    from_source = kind(right) == semconv.KIND_MESSAGE and not _is_read_as_it_is(view, right)
    return Repair(
        PUT,
        ref=right,
        text=content.strip(),
        day=moment.day if moment else None,
        replaces=_replaced(view, right, wrong),
        at=at if stage in ("retrieval", "assembly") else None,
        assumed=("extraction",) if from_source else (),
    )


def _removal(view: View, wrong: str) -> Repair | Refusal:
    read = _read_instead(view, wrong) if wrong else ""
    if not read:
        return Refusal("neither a right value nor the wrong one was read", "nothing_downstream")
    return Repair(REMOVE, replaces=read)


def _is_read_as_it_is(view: View, ref: str) -> bool:
    """Whether reads deliver messages themselves: then a message is no stand-in for a memory."""
    kinds = {kind(each) for each in (*view.delivered, *view.shown)}
    return ref in view.candidates or kinds == {semconv.KIND_MESSAGE}


def _stands_in_prompt(view: View, right: str) -> bool:
    refs = (*view.contexts, *(r for r in view.answer.shown if kind(r) == semconv.KIND_CONTEXT))
    content = (view.text(right) or "").strip()
    return bool(content) and any(content in (view.text(ref) or "") for ref in refs)


def _replaced(view: View, right: str, wrong: str) -> str:
    """The version that was read where the right one should have been."""
    if right in view.delivered:
        return ""
    same_record = _read_version(view, variables.record_of(right)) if _is_stored(right) else ""
    return same_record or (_read_instead(view, wrong) if wrong else "")


def _read_instead(view: View, wrong: str) -> str:
    """What of the wrong value was read: itself, its record, or what was made from it."""
    if is_deleted(wrong) or kind(wrong) in (semconv.KIND_ANSWER, semconv.KIND_QUERY):
        return ""
    read = tuple(dict.fromkeys((*view.delivered, *view.shown)))
    if wrong in read:
        return wrong
    if _is_stored(wrong) and (version := _read_version(view, variables.record_of(wrong))):
        return version
    return next((ref for ref in read if wrong in _origins(view, ref)), "")


def _read_version(view: View, record: str) -> str:
    read = (*view.delivered, *view.shown)
    return next((ref for ref in read if variables.record_of(ref) == record), "")


def _origins(view: View, ref: str) -> set[str]:
    """The values that a version was written from."""
    found: set[str] = set()
    waiting: list[str] = [ref]
    for _ in range(_MAX_DEPTH):
        made = [(maker, each) for each in waiting for maker in view.producers(each)[:1]]
        waiting = [s for maker, each in made for s in _written_from(maker, each) if s not in found]
        found.update(waiting)
    return found


def _written_from(maker: Operation, ref: str) -> Sequence[str]:
    return [each for each in sources_within(maker, ref) if kind(each) == semconv.KIND_FACT]


def _is_stored(ref: str) -> bool:
    return kind(ref) in (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)


def home_read(view: View, repair: Repair) -> Operation | None:
    """The read that should have brought the right value: the one the verdict names, else one
    that considered its record, else one of the memory it was written to, else the first."""
    retrieves = [op for op in view.reads if op.step == semconv.STEP_RETRIEVE] or view.reads
    named = [op for op in view.reads if op.key == repair.at]
    records = {variables.record_of(ref) for ref in (repair.ref, repair.replaces) if ref}
    homes = {maker.graph_id for maker in view.producers(repair.ref)}
    near = [op for op in retrieves if records & _considered(op)]
    same = [op for op in retrieves if homes & {op.graph_id, *op.reads}]
    return next(iter((*named, *near, *same, *retrieves)), None)


def _considered(op: Operation) -> set[str]:
    return {variables.record_of(ref) for ref in _refs(op) if _is_stored(ref)}


def _refs(op: Operation) -> Iterable[str]:
    return (*op.delivered, *(entry.ref for entry in op.dropped))


def later_reranks(view: View, home: Operation) -> list[Operation]:
    """The rerankings that the home read's values went through, in order."""
    found: list[Operation] = []
    flowing = set(home.delivered)
    for op in view.reads:
        after = op.step == semconv.STEP_RERANK and op.key != home.key and op.step in READS
        if after and op.start_ns >= home.start_ns and flowing & {*op.inputs, *_refs(op)}:
            found.append(op)
            flowing |= set(op.delivered)
    return found
