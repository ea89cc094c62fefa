"""Which values hold what was needed: by text where there is text, else by descent. Pure.

Carriers are pooled: two records that say the needed words together carry the need together.
Every answer is three-valued; ``None`` means that the texts at hand leave it open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from memtrace_collector.attribution import dates, doubts, text
from memtrace_collector.attribution.needs import DOUBTFUL, KEEPS, Item, Need, states
from memtrace_collector.attribution.once import once
from memtrace_collector.attribution.owners import owner_named
from memtrace_collector.attribution.refs import Moment, is_deleted, kind, outputs_within
from memtrace_collector.attribution.view import View
from memtrace_collector.graph.references import named_by
from memtrace_otel import semconv, variables

ABOUT = 0.5
"""Share of the subject's words that makes a text be about it."""
TOPICAL = 0.8
"""Sentences this close to the best topical match may name the time."""
LOOSE = 0.6
_DERIVED = (
    semconv.KIND_FACT,
    semconv.KIND_MEMORY,
    semconv.KIND_DOCUMENT,
    semconv.KIND_CONTEXT,
)
_SOURCE_KINDS = (semconv.KIND_MESSAGE, semconv.KIND_DOCUMENT)


@dataclass(frozen=True)
class Sought:
    """One needed item in one case: what counts as carrying it, and who said it.

    ``sources`` carry it at the beginning. ``loose``: the expected words do not occur in the
    evidence, so the evidence's own words stand for them. ``by_descent``: no text to compare,
    what descends from the evidence is taken to carry it.
    """

    view: View
    need: Need
    item: Item
    sources: tuple[str, ...]
    keys: frozenset[str]
    loose: bool = False
    by_descent: bool = False
    stated_in_evidence: bool = True
    """False: the evidence is trusted to carry the item although its words do not show it."""
    derived: bool = False
    """The item is what memory was told last; nobody said what would have been right."""

    @cached_property
    def _memo(self) -> dict[str, bool | None]:
        return {}

    @cached_property
    def descent(self) -> frozenset[str]:
        """What was made from the sources, by edges or single inputs."""
        return descent(self.view, self.sources)

    def holds(self, ref: str) -> bool | None:
        """Whether one value carries the item."""
        if ref not in self._memo:
            self._memo[ref] = self._holds(ref)
        return self._memo[ref]

    def _holds(self, ref: str) -> bool | None:
        if is_deleted(ref):
            return False
        content = self.view.text(ref)
        if content is None:
            known = self.view.version_at(ref)
            if known != ref:
                return self.holds(known)
            return ref in self.descent if self.by_descent else None
        if ref in self.sources:
            return True
        found = self.stated(content, ref)
        if found and (self.other_owner(content, ref) or not self.on_subject(content, ref)):
            return False
        if found is False and self.view.is_cut(ref):
            found = None
        return doubts.judged(self, content, ref, found) if self.view.judgements.is_open else found

    def stated(self, content: str, ref: str | None = None) -> bool | None:
        """Whether a text (of this reference) says what is needed."""
        if self.by_descent:
            return None
        if self.item.temporal:
            return self._names_the_time(content, ref)
        if self.loose:
            share = text.coverage(self.item.tokens, [content])
            return True if share >= LOOSE else None if share >= DOUBTFUL / 2 else False
        return states(self.item, content)

    def _names_the_time(self, content: str, ref: str | None) -> bool | None:
        if not self.about(content):
            return False
        moment = self._moment(content, ref)
        topical = self.topical(content)
        found = [p for part in topical for p in dates.phrases(part, _anchor(part, ref, moment))]
        readings = [reading for phrase in found for reading in phrase.readings]
        if (
            not found
            and moment is not None
            and ref is not None
            and kind(ref) != semconv.KIND_CONTEXT
        ):
            readings = [dates.Interval(moment.day, moment.day)]
        if dates.matches(self.item.intervals, readings):
            return True
        unsure = moment is None or moment.assumed
        relative = not found or any(phrase.relative for phrase in found) or self._clock_is_open
        if (
            unsure
            and relative
            and (not readings or dates.nearest(self.item.intervals, readings) == 1)
        ):
            return None
        return False

    def _moment(self, content: str, ref: str | None) -> Moment | None:
        """The day from which a value's relative words count. A reader of a prompt knows only
        the days that stand in it, and today."""
        moment = self.view.moment(ref) if ref else None
        if ref is None or moment is None or kind(ref) != semconv.KIND_CONTEXT:
            return moment
        return moment if moment.day in _days_named(content) else Moment(self.view.asked_on, False)

    @cached_property
    def _clock_is_open(self) -> bool:
        """Whether the time was said in relative words, from a moment that nobody declared."""
        moments = [self.view.moment(ref) for ref in self.sources]
        return any(moment is None or moment.assumed for moment in moments) and any(
            phrase.relative
            for ref in self.sources
            for part in self.topical(self.view.text(ref) or "")
            for phrase in dates.phrases(part, self.view.asked_on)
        )

    def on_subject(self, content: str, ref: str) -> bool:
        """Whether a value says the item of the need's subject: it shares a word of it, or was
        made from a source. A prompt is read line by line."""
        subject = self.need.question | self.keys
        if not self.sources or not subject or kind(ref) not in _DERIVED or ref in self.descent:
            return True
        if self.item.temporal or self.loose:
            return True
        if kind(ref) != semconv.KIND_CONTEXT:
            return bool(text.content_tokens(content) & subject)
        lines = [line for line in text.sentences(content) if text.content_tokens(line) & subject]
        return states(self.item, "\n".join(lines)) is True

    def clock_decides(self, ref: str) -> bool:
        """Whether a day's difference with an unknown offset is all that speaks against a value."""
        moment = self.view.moment(ref)
        return self.item.temporal and self.holds(ref) is None and (moment is None or moment.assumed)

    def topical(self, content: str) -> list[str]:
        parts = text.sentences(content)
        scores = [self._topic_share(text.content_tokens(part)) for part in parts]
        best = max(scores, default=0.0)
        return [part for part, score in zip(parts, scores) if score >= TOPICAL * best]

    def _topic_share(self, tokens: frozenset[str]) -> float:
        subjects = [subject for subject in (self.need.question, self.keys) if subject]
        return max((len(tokens & subject) / len(subject) for subject in subjects), default=0.0)

    def about(self, content: str) -> bool:
        """Whether a text shares the need's subject, not merely any word."""
        return self._topic_share(text.content_tokens(content)) >= ABOUT

    def other_owner(self, content: str, ref: str) -> bool:
        """Whether a stored text says it of somebody the need does not speak of."""
        token = owner_named(content)
        if not token or kind(ref) not in (semconv.KIND_MEMORY, semconv.KIND_FACT):
            return False
        said = [
            self.need.asked,
            self.need.expected,
            *filter(None, map(self.view.text, self.sources)),
        ]
        return not any(token & text.content_tokens(each) for each in said)

    def among(self, refs: Iterable[str]) -> tuple[str, ...]:
        """The carriers among values: each alone, else those that carry it together."""
        known = list(dict.fromkeys(refs))
        alone = tuple(ref for ref in known if self.holds(ref))
        if alone or self.item.temporal or self.by_descent or len(self.item.tokens) < 2:
            return alone
        parts = {
            ref: content
            for ref in known
            if (content := self.view.text(ref)) and self.contributes(content)
        }
        if self.loose:
            whole = text.coverage(self.item.tokens, parts.values()) >= LOOSE
        else:
            whole = bool(states(self.item, "\n".join(parts.values())))
        return tuple(parts) if whole and len(parts) > 1 else ()

    @cached_property
    def reached(self) -> bool:
        """Whether a carrier was delivered, or stands in the context without a read."""
        view = self.view
        if self.among(view.delivered) or self.among(view.shown):
            return True
        return any(self.holds(ref) for ref in view.contexts)

    def contributes(self, content: str) -> bool:
        """Whether a text that is about the need has some of its words."""
        return self.about(content) and bool(text.content_tokens(content) & self.item.tokens)

    def open_among(self, refs: Iterable[str]) -> tuple[str, ...]:
        """Values of which it cannot be told whether they carry the item."""
        return tuple(ref for ref in dict.fromkeys(refs) if self.holds(ref) is None)

    def why_open(self, refs: Iterable[str]) -> tuple[str, ...]:
        """Entries of a verdict's ``missing`` for values that leave it open."""
        reasons = {
            "no_content"
            if self.view.text(ref) is None
            else "cut"
            if self.view.is_cut(ref)
            else "clock"
            for ref in self.open_among(refs)
            if self.view.text(ref) is None or self.view.is_cut(ref) or self.clock_decides(ref)
        }
        return tuple(sorted(reasons))


def descent(view: View, sources: Iterable[str]) -> frozenset[str]:
    """What was made from these values: along edges, along single inputs, and along equal text."""
    found: set[str] = set(sources)
    waiting = list(found)
    while waiting:
        ref = waiting.pop()
        for op in view.readers(ref):
            if op.composite or op.step in (semconv.STEP_ANSWER, semconv.STEP_JUDGE):
                continue
            made = outputs_within(op, ref)
            if not op.edges and len(op.inputs) > 1 and len(made) > 1:
                continue
            for output in made:
                if output not in found and not is_deleted(output):
                    found.add(output)
                    waiting.append(output)
    return frozenset(found)


def evidence_refs(view: View) -> tuple[str, ...]:
    """The evidence as known here: exact references, else every version of the same record."""
    known = set(view.case.texts)
    if not known.issuperset(view.case.evidence):
        known.update(ref for op in view.case.operations.values() for ref in named_by(op))
    found: dict[str, None] = {}
    for ref in view.case.evidence:
        if ref in known:
            found[ref] = None
            continue
        record = variables.record_of(ref)
        found.update(
            dict.fromkeys(sorted(other for other in known if variables.record_of(other) == record))
        )
    return tuple(found)


def _known_before(view: View, ref: str) -> bool:
    """Whether a value was there before the answer, as far as its producers say."""
    makers = view.producers(ref)
    return not makers or any(view.before(op) for op in makers)


def _anchor(part: str, ref: str | None, moment: Moment | None) -> date | None:
    """The day from which the relative words of a sentence count: in a prompt, that of its line."""
    named = _days_named(part) if ref and kind(ref) == semconv.KIND_CONTEXT else []
    return named[0] if named else moment.day if moment else None


def _days_named(content: str) -> list[date]:
    """The single days that a text names without relative words."""
    return [
        reading.start
        for phrase in dates.phrases(content, None)
        for reading in phrase.readings
        if reading.days == 1
    ]


@once
def said_before(view: View) -> tuple[str, ...]:
    """Messages and documents that entered before the answer, the query apart."""
    question = view.question
    asked = {view.query, *(ref for ref, said in view.case.texts.items() if said == question)}
    refs = [
        ref
        for op in view.case.operations.values()
        if view.before(op) and view.readable(op)
        for ref in (*op.outputs, *op.inputs)
        if kind(ref) in _SOURCE_KINDS and ref not in asked
    ]
    return tuple(dict.fromkeys(refs))


def _key_words(view: View, item: Item, sources: Iterable[str]) -> frozenset[str]:
    """The words of the evidence's own sentences on the item, without the needed ones."""
    keys: set[str] = set()
    for content in filter(None, map(view.text, sources)):
        parts = text.sentences(content)
        scores = [len(text.content_tokens(part) & item.tokens) for part in parts]
        best = max(scores, default=0)
        for part, score in zip(parts, scores):
            if score == best:
                keys |= text.content_tokens(part) - item.tokens
    return frozenset(keys)


def seek(view: View, need: Need) -> list[Sought]:
    """Each needed item with its sources in this case."""
    evidence = tuple(
        ref
        for ref in evidence_refs(view)
        if kind(ref) in (*_SOURCE_KINDS, semconv.KIND_FACT, semconv.KIND_MEMORY)
        and _known_before(view, ref)
    )
    given = evidence if view.case.evidence_given else ()
    if not need.items or not any(
        view.text(ref) for ref in (*given, *said_before(view), *view.current_versions)
    ):
        blank = Item("", frozenset())
        return [
            Sought(view, need, item, given, frozenset(), by_descent=True)
            for item in need.items or (blank,)
        ]
    return [_bind(view, need, item, given) for item in need.items]


def _bind(view: View, need: Need, item: Item, given: tuple[str, ...]) -> Sought:
    keys = _key_words(view, item, given)
    plain = Sought(view, need, item, (), keys)
    stated = plain.among(given)
    everywhere = _on_topic(view, need.question | keys, plain.among(said_before(view)))
    if stated or not given:
        sources = tuple(dict.fromkeys([*stated, *everywhere]))
        return Sought(
            view, need, item, sources, _key_words(view, item, sources) if sources else keys
        )
    contents = [content for ref in given if (content := view.text(ref)) is not None]
    if not contents:
        return Sought(view, need, item, given, keys, stated_in_evidence=False)
    if item.temporal and (readings := _times_named(plain, given)):
        # the evidence names its own time: downstream is compared with that
        named = Item(item.text, item.tokens, readings)
        return Sought(view, need, named, given, keys, stated_in_evidence=False)
    if not item.temporal and text.coverage(item.tokens, contents) >= KEEPS:
        return Sought(view, need, item, everywhere, keys, stated_in_evidence=False)
    return _paraphrased(view, need, item, given, contents)


def _on_topic(view: View, subject: frozenset[str], refs: tuple[str, ...]) -> tuple[str, ...]:
    """Those that share a word of the subject; all of them when none does."""
    sharing = tuple(ref for ref in refs if text.content_tokens(view.text(ref) or "") & subject)
    return sharing or refs


def _times_named(plain: Sought, refs: Iterable[str]) -> tuple[dates.Interval, ...]:
    found: list[dates.Interval] = []
    for ref in refs:
        moment = plain.view.moment(ref)
        for part in plain.topical(plain.view.text(ref) or ""):
            for phrase in dates.phrases(part, moment.day if moment else None):
                found.extend(phrase.readings)
    return tuple(found)


def _paraphrased(
    view: View, need: Need, item: Item, given: tuple[str, ...], contents: list[str]
) -> Sought:
    """The evidence says it in other words: its sentences on the question stand for the item."""
    parts = [part for content in contents for part in text.sentences(content)]
    wanted = need.question | item.tokens
    scores = [len(text.content_tokens(part) & wanted) for part in parts]
    best = max(scores, default=0)
    tokens = frozenset().union(
        *(text.content_tokens(part) for part, score in zip(parts, scores) if score == best)
    )
    loose = Item(item.text, (tokens - need.question) or tokens)
    return Sought(view, need, loose, given, frozenset(), loose=True, stated_in_evidence=False)
