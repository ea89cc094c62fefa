"""Rows of the hop *first stored*: from what was said to the first record that has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.once import once
from memtrace_collector.attribution.carrying.refs import is_deleted, kind, outputs_within
from memtrace_collector.attribution.carrying.view import READS, View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, abstain, at, claim
from memtrace_collector.attribution.texts import text
from memtrace_collector.attribution.texts.owners import owner_was_lost
from memtrace_collector.attribution.verdict import Decisive
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv, variables

_STORED = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)
_MADE = (semconv.KIND_FACT, *_STORED)
_MAKERS = frozenset(
    {
        semconv.STEP_EXTRACT,
        semconv.STEP_ADD,
        semconv.STEP_CREATE,
        semconv.STEP_UPDATE,
        semconv.STEP_CONSOLIDATE,
        semconv.STEP_DECIDE,
        semconv.STEP_ANSWER,
    }
)
_WRITERS = frozenset({semconv.STEP_DECIDE, semconv.STEP_CREATE, semconv.STEP_UPDATE})
EXPLAINED = 0.8
"""Share of a fact's words found in one sentence that makes the sentence its origin."""


REPHRASED = 0.5
"""Share of a fact's words found in the sentence that says the item: it was made of that one."""


class Making(NamedTuple):
    """An operation that read a source, and what it made of it."""

    operation: Operation
    source: str
    made: tuple[str, ...]


@once
def versions_ever(sought: Sought) -> tuple[str, ...]:
    """Every stored version that was seen, current or not, written or only read."""
    view = sought.view
    written = [write.version for writes in view.histories.values() for write in writes]
    return tuple(dict.fromkeys([*written, *view.current_versions, *versions_seen(view)]))


@once
def versions_seen(view: View) -> tuple[str, ...]:
    """Versions that some read met, of whomever written."""
    met = [
        ref
        for op in view.operations
        if op.step in READS and view.readable(op)
        for ref in (*op.delivered, *(entry.ref for entry in op.dropped))
        if kind(ref) in _STORED
    ]
    return tuple(dict.fromkeys([*met, *_versions_met_elsewhere(view), *_versions_acted_on(view)]))


def _versions_met_elsewhere(view: View) -> list[str]:
    """Versions of the case's records that reads of other turns met."""
    met: set[str] = set()
    for op in (view.case.operations[key] for key in view.case.met):
        if view.readable(op):
            met.update(op.delivered, (entry.ref for entry in op.dropped))
    return sorted(ref for ref in met if variables.record_of(ref) in view.case.histories)


def _versions_acted_on(view: View) -> list[str]:
    """Versions that a decision or a write found in memory before the read."""
    return [
        ref
        for op in view.operations
        if op.step not in READS and view.before(op) and view.readable(op)
        for ref in (*op.shown, *op.supersedes, *(d.target for d in op.decisions if d.target))
        if kind(ref) in _STORED and not is_deleted(ref)
    ]


@once
def facts_ever(view: View) -> tuple[str, ...]:
    """Every candidate fact produced before the answer, of several stages those of the last."""
    refs = [
        ref
        for op in view.operations
        if view.before(op) and view.readable(op)
        for ref in op.outputs
        if kind(ref) == semconv.KIND_FACT and not _is_extracted_from(view, ref)
    ]
    return tuple(dict.fromkeys(refs))


def _is_extracted_from(view: View, fact: str) -> bool:
    """Whether a fact is a step on the way: another extraction reads it."""
    return any(op.step == semconv.STEP_EXTRACT and not op.composite for op in view.readers(fact))


@once
def makings(sought: Sought) -> list[Making]:
    """Who read the sources to remember them, in time order."""
    view = sought.view
    found = []
    for op in view.operations:
        if op.step not in _MAKERS or not view.before(op):
            continue
        if op.step == semconv.STEP_ANSWER and not any(
            kind(ref) == semconv.KIND_FACT for ref in op.outputs
        ):
            continue
        for source in op.inputs:
            if source in sought.sources or _passed_on(sought, source):
                made = tuple(ref for ref in outputs_within(op, source) if kind(ref) in _MADE)
                found.append(Making(op, source, made))
    return found


def _passed_on(sought: Sought, ref: str) -> bool:
    """Whether a value is a carrier that one extraction made for the next."""
    return (
        kind(ref) == semconv.KIND_FACT
        and _is_extracted_from(sought.view, ref)
        and bool(sought.holds(ref))
    )


@once
def stored_or_open(sought: Sought) -> tuple[bool, tuple[str, ...]]:
    """Whether a version ever carried the item, and the values that leave it open."""
    versions = versions_ever(sought)
    return bool(sought.among(versions)), sought.open_among(
        ref for ref in versions if not is_deleted(ref)
    )


def omission(sought: Sought) -> Finding | None:
    """An extraction read the carrier and no fact is about it; or nothing passed it on (P6)."""
    view = sought.view
    if not sought.sources or stored_or_open(sought)[0] or sought.among(facts_ever(view)):
        return None
    read = makings(sought)
    if not read:
        return _not_passed_on(sought)
    if is_kept_raw(read):
        return None
    if any(_changes_the_value(sought, ref, making) for making in read for ref in making.made):
        return None
    open_refs = sought.open_among(ref for making in read for ref in making.made)
    if open_refs or any(making.operation.truncated for making in read):
        return abstain(*(sought.why_open(open_refs) or ("cut",)))
    silent = [making for making in read if not sought.among(making.made)] or read
    unheard = [making for making in silent if not _kept_its_part(sought, making)] or silent
    first, rest = unheard[0], _others(unheard)
    return Finding(
        error_type="omission",
        decisive=(first.operation.key,),
        last_right=first.source,
        also=tuple(at(making.operation, "omission", making.source) for making in rest),
        basis=(STRUCTURE,) if sought.by_descent else (STRUCTURE, TEXT),
        claims=(
            claim("says it", next(iter(view.producers(first.source)), None), first.source),
            claim(
                f"read it; of the facts that it made ({len(first.made)}) none is about it",
                first.operation,
                first.source,
            ),
        ),
        window=view.window(
            first.operation.start_ns, view.read_ns, [first.operation, *view.writers()]
        ),
    )


def is_kept_raw(read: Sequence[Making]) -> bool:
    """Whether what was said is itself what is decided on and written: nothing is extracted."""
    steps = {making.operation.step for making in read}
    return bool(steps) and steps <= _WRITERS and not any(making.made for making in read)


def _kept_its_part(sought: Sought, making: Making) -> bool:
    """Whether what was made has the source's own share of the needed words (several messages
    may say it together)."""
    if sought.by_descent or sought.item.temporal:
        return False
    part = text.content_tokens(sought.view.text(making.source) or "") & sought.item.tokens
    made = [sought.view.text(ref) or "" for ref in making.made]
    return bool(part) and text.coverage(part, made) == 1


def left_out(sought: Sought) -> tuple[Decisive, ...]:
    """Operations that read a source and made no carrier of it: repairs that would have helped
    although another carrier existed for a while."""
    return tuple(
        at(making.operation, "omission", making.source)
        for making in makings(sought)
        if not sought.among(making.made) and not sought.open_among(making.made)
    )


def _others(read: Iterable[Making]) -> list[Making]:
    by_key = {making.operation.key: making for making in reversed(list(read))}
    ordered = sorted(by_key.values(), key=lambda making: making.operation.start_ns)
    return ordered[1:]


def _not_passed_on(sought: Sought) -> Finding | None:
    """The message entered, but no extraction ever saw it: the model's or the buffer's choice."""
    view = sought.view
    if any(ref in sought.sources for ref in (*view.delivered, *view.shown)):
        return None
    for source in sought.sources:
        if kind(source) != semconv.KIND_MESSAGE or view.is_cut(source):
            continue
        users = [op for op in view.readers(source) if view.before(op)]
        chats = [op for op in users if op.step == semconv.STEP_ANSWER and not op.composite]
        adds = [op for op in users if op.step == semconv.STEP_ADD] or [
            add
            for op in view.producers(source)
            if (add := view.enclosing(op, semconv.STEP_ADD)) is not None
        ]
        for op in (*chats[:1], *adds[:1]):
            return Finding(
                error_type="omission",
                decisive=(op.key,),
                last_right=source,
                basis=(STRUCTURE,),
                weight=0.85,
                claims=(claim("had it and passed nothing on to memory", op, source),),
                window=view.window(op.start_ns, view.read_ns, [op, *view.writers()]),
            )
    return None


def _changes_the_value(sought: Sought, ref: str, making: Making) -> bool:
    """Whether a fact is about the item and puts another value in its place.

    A fact that another sentence of what was read accounts for is a right fact about something
    else; one that merely leaves the value out is no wrong value.
    """
    content = sought.view.text(ref)
    if content is None:
        return sought.by_descent and bool(making.operation.edges)
    if sought.holds(ref) or ref not in sought.kin:
        return False
    if sought.differs(content):
        return True
    if not sought.about(content):
        return False
    said = text.content_tokens(content)
    carrying, others = _sentences_read(sought, making)
    if any(said and len(said & other) >= EXPLAINED * len(said) for other in others):
        return False
    source = sought.view.text(making.source) or ""
    part = text.content_tokens(source) & sought.item.tokens
    if part < sought.item.tokens and part and part <= said:
        return False  # another message says the rest
    if sought.item.temporal or said & sought.item.tokens:
        return True
    if owner_was_lost(source, content):
        return True
    own = said - text.proper_names(content) - sought.dated_words(content)
    if len(own & carrying) < REPHRASED * len(own):
        return False
    subject = (sought.need.question | sought.keys) & said
    return bool(text.unlike(said - sought.need.question, carrying)) or (
        text.negated(source, subject) != text.negated(content, subject)
    )


def _sentences_read(sought: Sought, making: Making) -> tuple[frozenset[str], list[frozenset[str]]]:
    """Words of the sentences that say the item, and of each other sentence the maker read."""
    carrying: frozenset[str] = frozenset()
    others = []
    wanted = sought.item.tokens | sought.keys
    for ref in making.operation.inputs:
        parts = text.sentences(sought.view.text(ref) or "")
        scores = [len(text.content_tokens(part) & wanted) for part in parts]
        best = max(scores, default=0)
        for part, score in zip(parts, scores):
            if ref in sought.sources and score == best:
                carrying |= text.content_tokens(part)
            else:
                others.append(text.content_tokens(part))
    return carrying, others


def distortion(sought: Sought) -> Finding | None:
    """A fact is about it and has its value changed; or the first record made of a fact has."""
    view = sought.view
    if sought.by_descent or not sought.sources or stored_or_open(sought)[0]:
        return None
    facts = sought.among(facts_ever(view))
    if facts:
        return _distorted_when_stored(sought, facts)
    for making in makings(sought):
        for ref in making.made:
            content = view.text(ref)
            if content is None or not _changes_the_value(sought, ref, making):
                continue
            if sought.holds(ref) is None:
                return abstain(*sought.why_open([ref]))
            return Finding(
                error_type="distortion",
                decisive=(making.operation.key,),
                last_right=making.source,
                first_wrong=ref,
                aspect=aspect(sought, making.source, content),
                claims=(
                    claim(
                        "says it", next(iter(view.producers(making.source)), None), making.source
                    ),
                    claim("made a fact about it with another value", making.operation, ref),
                ),
            )
    return None


def _distorted_when_stored(sought: Sought, facts: tuple[str, ...]) -> Finding | None:
    """The fact was right; what a decision or the write made of it is about it and wrong."""
    view = sought.view
    for fact in facts:
        for op in view.readers(fact):
            if (
                op.composite
                or op.step not in (semconv.STEP_DECIDE, semconv.STEP_CREATE)
                or not view.before(op)
            ):
                continue
            for ref in outputs_within(op, fact):
                content = view.text(ref)
                # a batch decision's other texts may share the subject: one that replaces is wrong
                if (
                    content is None
                    or sought.holds(ref) is not False
                    or not _replaces(sought, fact, content)
                ):
                    continue
                if not _was_written(view, ref):
                    continue
                return Finding(
                    error_type="distortion",
                    decisive=(op.key,),
                    last_right=fact,
                    first_wrong=ref,
                    aspect=aspect(sought, fact, content),
                    claims=(claim("wrote the right fact with another value", op, ref),),
                )
    return None


def _replaces(sought: Sought, right: str, content: str) -> bool:
    """Whether a text repeats a right one nearly word for word but for the needed value."""
    kept = text.content_tokens(sought.view.text(right) or "") - sought.item.tokens
    said = text.content_tokens(content)
    return sought.about(content) and (not kept or len(kept & said) / len(kept) >= 0.6)


def _was_written(view: View, ref: str) -> bool:
    if kind(ref) in _STORED:
        return True
    digest = variables.text_version(variables.version_of(ref))
    return any(
        variables.text_version(variables.version_of(write.version)) == digest
        for writes in view.histories.values()
        for write in writes
    )


def aspect(sought: Sought, right: str, wrong_text: str) -> str:
    """Which side of the value was changed: time, number, negation, owner or the item itself."""
    if sought.item.temporal:
        return "time"
    said, needed = text.content_tokens(wrong_text), sought.item.tokens
    missing = needed - said
    if owner_was_lost(sought.view.text(right) or "", wrong_text):
        return "owner"
    if text.numbers(missing):
        return "number"
    right_text = sought.view.text(right) or ""
    subject = (sought.need.question | sought.keys | needed) & text.content_tokens(right_text)
    if text.negated(right_text, subject) != text.negated(wrong_text, subject & said):
        return "negation"
    return "item" if missing else "owner"
