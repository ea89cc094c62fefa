"""What became of the values that bear on a question: those that an operation lost. Pure.

Where nobody said what was right, the life of a value tells more than its words: most values are
stored and stay. One that was deleted, replaced, dropped by a chunker or kept out by a decision,
and that bears on the question, is a likely cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from memtrace_collector.attribution.carrying.bearing import Bearing
from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.needs import Item, Need
from memtrace_collector.attribution.carrying.refs import is_deleted, kind, outputs_within
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.findings import STRUCTURE, TEXT, Finding, claim
from memtrace_collector.attribution.rules import kept, not_stored, told
from memtrace_collector.attribution.rules.found import moved_below
from memtrace_collector.attribution.rules.not_deleted import says_forget
from memtrace_collector.attribution.texts import text
from memtrace_collector.graph.facts import Operation
from memtrace_otel import semconv, variables

BEARS = 0.1
"""How well a value must fit the question for its loss to count."""
FITS = 0.25
"""The same for a value that only was not found: nearly all are not, for every question."""
CLEARLY = 0.15
"""How much better than all of the prompt a message must fit for its omission to count."""
_KEPT = 0.7
_SAME = 0.8
_HALF = 0.5
_FOLLOWED = 3
_Row = Callable[[Sought], Finding | None]
_ROWS: dict[str, tuple[_Row, ...]] = {
    "replaced": (
        kept.overwritten,
        kept.merged_wrong,
        kept.compacted_away,
        kept.wrongly_deleted,
    ),
    "unstored": (not_stored.not_stored,),
    "dropped": (told.lost_at_ingest,),
}


class LostValue(NamedTuple):
    """A value (or a sentence of it) that went no further, and how well it fits the question."""

    fit: float
    fate: str
    ref: str
    tokens: frozenset[str]


def lost_in_life(view: View, need: Need, bearing: Bearing) -> Finding | None:
    """The verdict on the lost value that fits the question best."""
    found = [*_replaced(view, bearing), *_unstored(view, bearing), *_dropped(view, bearing)]
    found = [each for each in found if each.fit >= BEARS]
    found.sort(key=lambda each: -each.fit)
    for lost in found[:_FOLLOWED]:
        sought = following(view, need, lost.ref, lost.tokens)
        for row in _ROWS[lost.fate]:
            finding = row(sought)
            if finding is None or finding.stage == "unknown":
                continue
            if finding.error_type != "compacted_away" or _is_telling(lost, bearing):
                return finding
    return None


def _is_telling(lost: LostValue, bearing: Bearing) -> bool:
    """Summaries drop words all the time: what is lost must fit about as well as what is left."""
    return lost.fit >= max(FITS, _KEPT * bearing.in_context)


def following(view: View, need: Need, ref: str, tokens: frozenset[str]) -> Sought:
    """A value as something to be followed, by its own words."""
    return Sought(
        view, Need("content", need.asked, "", need.question),
        Item("", (tokens - need.question) or tokens), (ref,), frozenset(), loose=True,
        stated_in_evidence=False, derived=True,
    )  # fmt: skip


def _replaced(view: View, bearing: Bearing) -> Iterator[LostValue]:
    """Versions of which the next one, and the last, kept little."""
    for writes in view.histories.values():
        for place, write in enumerate(writes[:-1]):
            said, after = view.text(write.version), writes[place + 1]
            if not said or is_deleted(write.version):
                continue
            tokens = text.content_tokens(said)
            left = [after.version, writes[-1].version, *after.operation.outputs]
            if text.coverage(tokens, _texts(view, left)) < _KEPT:
                yield LostValue(bearing.of_ref(write.version), "replaced", write.version, tokens)


def _unstored(view: View, bearing: Bearing) -> Iterator[LostValue]:
    """Facts that came to a decision and that no version says."""
    digests = {_digest(w.version) for writes in view.case.histories.values() for w in writes}
    current = [text.content_tokens(said) for said in _texts(view, view.current_versions)]
    for op in view.operations:
        if op.step != semconv.STEP_DECIDE or not view.before(op):
            continue
        for ref in op.inputs:
            said = view.text(ref)
            if kind(ref) != semconv.KIND_FACT or not said or _digest(ref) in digests:
                continue
            if says_forget(said):
                continue  # is carried out, not stored
            fit = bearing.of_ref(ref)
            tokens = text.content_tokens(said)
            if fit >= BEARS and not any(len(tokens & c) >= _SAME * len(tokens) for c in current):
                yield LostValue(fit, "unstored", ref, tokens)


def _dropped(view: View, bearing: Bearing) -> Iterator[LostValue]:
    """Sentences of what entered that are in nothing an ingest made of it."""
    for op in view.operations:
        if op.step != semconv.STEP_INGEST or not view.before(op):
            continue
        made = _texts(view, op.outputs)
        for ref in op.inputs if made else ():
            for part in text.sentences(view.text(ref) or ""):
                tokens = text.content_tokens(part)
                if tokens and text.coverage(tokens, made) < _HALF:
                    yield LostValue(bearing.of(part), "dropped", ref, tokens)


def _texts(view: View, refs: Iterable[str]) -> list[str]:
    return [said for ref in refs if (said := view.text(ref))]


def _digest(ref: str) -> str:
    return variables.text_version(variables.version_of(ref))


def not_found(view: View, bearing: Bearing) -> Finding | None:
    """A current value that fits the question better than all that was shown, and was not found."""
    missed = [
        ref
        for ref in view.current_versions
        if ref not in view.delivered and ref not in view.shown and view.text(ref)
    ]
    best = bearing.best(missed)
    searches = [op for op in view.reads if op.step == semconv.STEP_RETRIEVE] or view.reads
    given = max([bearing.in_context, *map(bearing.of_ref, view.delivered)])
    if best is None or not searches or best[0] < FITS or best[0] <= given:
        return None
    ref = best[1]
    for op in view.reads:
        for entry in op.dropped:
            if ref in (entry.ref, view.version_at(entry.ref)):
                cutter = moved_below(view, entry.ref, op)
                return _missed("ranked_out", cutter, ref, "was cut", view)
    return _missed("not_retrieved", searches[0], ref, "was never considered", view)


def _missed(error_type: str, op: Operation, ref: str, says: str, view: View) -> Finding:
    return Finding(
        error_type=error_type,
        decisive=(op.key,),
        last_right=ref,
        claims=(
            claim("fits the question better than all of the prompt", None, ref),
            claim(says, op, ref),
        ),
        window=None
        if error_type == "ranked_out"
        else view.window(op.start_ns, op.start_ns, [op, *view.writers()]),
    )


def not_extracted(view: View, bearing: Bearing) -> Finding | None:
    """The message that fits the question clearly better than the prompt, if an extraction read it
    and made nothing of its best sentence."""
    said = [
        ref
        for ref in bearing.values
        if kind(ref) == semconv.KIND_MESSAGE and not text.asks(bearing.values[ref])
    ]
    best = bearing.best(said)
    if best is None or best[0] < max(FITS, bearing.in_context + CLEARLY):
        return None
    ref = best[1]
    part = max(text.sentences(bearing.values[ref]), key=bearing.of)
    readers = [
        op for op in view.readers(ref) if op.step == semconv.STEP_EXTRACT and view.before(op)
    ]
    made = [fact for op in readers for fact in outputs_within(op, ref)]
    if not readers or text.coverage(text.content_tokens(part), _texts(view, made)) >= _HALF:
        return None
    return Finding(
        error_type="omission",
        decisive=(readers[0].key,),
        last_right=ref,
        basis=(STRUCTURE, TEXT),
        claims=(
            claim("fits the question better than all of the prompt", None, ref),
            claim("read it and made nothing of it", readers[0], ref),
        ),
        window=view.window(readers[0].start_ns, view.read_ns, [readers[0], *view.writers()]),
    )
