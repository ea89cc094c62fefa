"""Which values hold what was needed: by text where there is text, else by descent. Pure.

Carriers are pooled: two records that say the needed words together carry the need together.
Every answer is three-valued; ``None`` means that the texts at hand leave it open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from memtrace_collector.attribution.carrying import changed, doubts, passages, quotations
from memtrace_collector.attribution.carrying.descent import descent, kin
from memtrace_collector.attribution.carrying.needs import Item, Need, needed_tokens, states
from memtrace_collector.attribution.carrying.refs import Moment, is_deleted, kind
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.texts import dates, text
from memtrace_collector.attribution.texts.owners import owner_named
from memtrace_collector.attribution.texts.wording import Exchange, exchanges
from memtrace_otel import semconv

ABOUT = 0.5
"""Share of the subject's words that makes a text be about it."""
TOPICAL = 0.8
"""Sentences this close to the best topical match may name the time."""
LOOSE = 0.6
NEAR = 0.3
"""Share of the evidence's words that makes what was made from it carry it."""
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

    @cached_property
    def kin(self) -> frozenset[str]:
        """What was made from the sources, as far as edges and wording say."""
        return kin(self.view, self.sources, self._says_what_was_expected)

    def _says_what_was_expected(self, content: str) -> bool:
        """Whether a text has the expected answer's own words, which the evidence may lack."""
        tokens = needed_tokens(self.item.text, self.need.question)
        return bool(tokens) and states(Item(self.item.text, tokens), content) is True

    @cached_property
    def said(self) -> frozenset[str]:
        """Every word of the sources."""
        return frozenset().union(
            *(text.content_tokens(self.view.text(ref) or "") for ref in self.sources)
        )

    @cached_property
    def _is_cut(self) -> bool:
        """Whether a source may have said more: shortened, or taken in by somebody unseen."""
        return any(self.view.is_cut(ref) or not self.view.producers(ref) for ref in self.sources)

    @cached_property
    def wrong_words(self) -> frozenset[str]:
        """What only the reply says, not the evidence, the question or the expected answer."""
        reply = self.view.reply
        if reply is None or text.declines(reply) or not self.said:
            return frozenset()
        known = self.said | self.need.question | text.content_tokens(self.need.expected)
        return text.unlike(text.content_tokens(reply), known)

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
            if ref in self.descent or not self.by_descent:
                return True if self.by_descent else None
            return None if ref in self._possible else False
        if ref in self.sources or quotations.quotes_a_carrier(self, content, ref):
            return True
        found = self.stated(self._unchanged(content, ref), ref)
        if found and self.other_owner(content, ref):
            return False
        if found is not False and not self.on_subject(content, ref):
            return False
        if found and kind(ref) == semconv.KIND_CONTEXT and quotations.is_scattered(self, content):
            return False
        if found is False and self.view.is_cut(ref):
            found = None
        return doubts.judged(self, content, ref, found) if self.view.judgements.is_open else found

    def _unchanged(self, content: str, ref: str) -> str:
        """A text without the sentences that have what only the wrong reply says, or, where it was
        made from a source (a prompt, too), say the opposite."""
        if self.by_descent or not self.sources:
            return content
        made = ref in self.kin or kind(ref) == semconv.KIND_CONTEXT
        wrong = not self.item.temporal and self.wrong_words & text.content_tokens(content)
        if not made and not wrong:
            return content
        parts = text.sentences(content)
        as_made = self._names_another if self.item.temporal else self.differs
        differs = as_made if made else self.is_exchanged
        same = [part for part in parts if not differs(part)]
        return content if len(same) == len(parts) else "\n".join(same)

    def differs(self, content: str) -> bool:
        """Whether a text made from a source says its opposite, or what only the reply says."""
        return (
            self.is_exchanged(content)
            or self._names_another(content)
            or changed.says_the_opposite(
                content, self.item.tokens, self._originals, self.need.question
            )
        )

    def _names_another(self, content: str) -> bool:
        """Whether a text names whom only the reply names, and nobody whom the question names."""
        names = text.proper_names(f"x {content}")
        return bool(names & self.wrong_words) and names.isdisjoint(self.need.question)

    def is_exchanged(self, content: str) -> bool:
        """Whether a text has what only the reply says in the place of what was needed."""
        own = text.content_tokens(content)
        return changed.has_instead(content, self.item.tokens, self.wrong_words) or any(
            each.said <= own and not each.expected & own for each in self._exchanged
        )

    @cached_property
    def _exchanged(self) -> tuple[Exchange, ...]:
        """What nobody said and a reply has in the place of words of the expected answer."""
        found = exchanges(self.need.expected, self.view.reply or "")
        return tuple(each for each in found if each.said <= self.wrong_words)

    @cached_property
    def _originals(self) -> tuple[str, ...]:
        return (self.item.text, *filter(None, map(self.view.text, self.sources)))

    @cached_property
    def _possible(self) -> frozenset[str]:
        """What was made from the sources or from something else: no edge says which."""
        return descent(self.view, self.sources, possible=True)

    def stated(self, content: str, ref: str | None = None) -> bool | None:
        """Whether a text (of this reference) says what is needed."""
        if self.by_descent:
            return None
        if self.item.temporal:
            return self._names_the_time(content, ref)
        if self.loose:
            return self._resembles(content, ref)
        if ref is None or kind(ref) == semconv.KIND_CONTEXT:
            return states(self.item, content)
        found = [states(self.item, part) for part in passages.parts(content, self._originals)]
        return True if True in found else None if None in found else False

    def _resembles(self, content: str, ref: str | None) -> bool | None:
        """Whether a text says what the evidence says, in the evidence's words or made from it."""
        if ref is not None and kind(ref) == semconv.KIND_CONTEXT:
            quoted = (self.view.text(each) for each in self.kin if self.holds(each))
            if any(each and each.strip() in content for each in quoted):
                return True
        if ref is None or ref not in self.kin:
            parts = passages.parts(content, self._originals)
            return any(text.coverage(self.item.tokens, [part]) >= LOOSE for part in parts)
        own = text.content_tokens(content)
        share = text.coverage(self.item.tokens, [content])
        if self._is_said_as_expected:
            return not own & self.wrong_words and self._says_what_was_expected(content)
        if own & self.wrong_words or text.numbers(own - self.said - self.dated_words(content)):
            return False
        precise = len(own & self.said) / len(own) if own else 0.0
        if share >= LOOSE or (max(share / NEAR, precise / LOOSE) >= 1 and not self._is_cut):
            return True
        return None if share >= NEAR / 2 else False

    @cached_property
    def _is_said_as_expected(self) -> bool:
        """Whether something that was made from the sources has the expected words: then these
        are what is followed, and no likeness."""
        return any(
            self._says_what_was_expected(said)
            for ref in self.kin
            if ref not in self.sources and (said := self.view.text(ref))
        )

    def dated_words(self, content: str) -> frozenset[str]:
        """The words of the times that a text names: whoever writes a record may add its day."""
        named = dates.phrases(content, None)
        return frozenset().union(*(text.content_tokens(phrase.text) for phrase in named))

    def _names_the_time(self, content: str, ref: str | None) -> bool | None:
        if not self.about(content) and not self._repeats_a_time(content, ref):
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
            and self._is_said_then(ref)
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

    def _is_said_then(self, ref: str) -> bool:
        """Whether the day on which something was said may be the needed time: of the evidence and
        what was made from it; of others where the evidence names no time but its day."""
        if not self.sources:
            return not self.view.case.evidence_given or ref in self.view.case.evidence
        moments = filter(None, map(self.view.moment, self.sources))
        return ref in self.kin or any(
            dates.matches(self.item.intervals, [dates.Interval(moment.day, moment.day)])
            for moment in moments
        )

    def _repeats_a_time(self, content: str, ref: str | None) -> bool:
        """Whether what was made from a source repeats most of a sentence that names the time."""
        if ref not in self.kin:
            return False
        own = text.content_tokens(content) - self.dated_words(content) - text.proper_names(content)
        said = (text.sentences(self.view.text(source) or "") for source in self.sources)
        return any(
            len(own & text.content_tokens(part)) >= ABOUT * max(1, len(own))
            for parts in said
            for part in parts
            if dates.phrases(part, self.view.asked_on)
        )

    def _moment(self, content: str, ref: str | None) -> Moment | None:
        """The day from which a value's relative words count. A reader of a prompt knows only
        the days that stand in it, and today."""
        moment = self.view.moment(ref) if ref else None
        if ref is None or moment is None or kind(ref) != semconv.KIND_CONTEXT:
            return moment
        return (
            moment if moment.day in dates.days_named(content) else Moment(self.view.asked_on, False)
        )

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
        if not self.sources or not subject or kind(ref) not in _DERIVED or ref in self.kin:
            return True
        if self.item.temporal or self.loose:
            return True
        if kind(ref) != semconv.KIND_CONTEXT:
            return self.about(content)
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
            if (content := self._unchanged(self.view.text(ref) or "", ref))
            and self.contributes(content)
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


def _anchor(part: str, ref: str | None, moment: Moment | None) -> date | None:
    """The day from which the relative words of a sentence count: in what was derived from a
    message the one that it names itself."""
    named = dates.days_named(part) if ref and kind(ref) in _DERIVED else []
    return named[0] if named else moment.day if moment else None
