"""A need bound to a case: who said each needed item, in which words it is to be followed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.likely import likely_evidence
from memtrace_collector.attribution.carrying.needs import KEEPS, Item, Need, states
from memtrace_collector.attribution.carrying.refs import kind
from memtrace_collector.attribution.carrying.said import (
    SOURCE_KINDS,
    evidence_refs,
    known_before,
    said_before,
)
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.texts import dates, text
from memtrace_otel import semconv

AGAIN = 0.6
"""Share of a message's words that another has which says the same again."""


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
        if kind(ref) in (*SOURCE_KINDS, semconv.KIND_FACT, semconv.KIND_MEMORY)
        and known_before(view, ref)
    )
    given = evidence if view.case.evidence_given else ()
    readable = any(view.text(ref) for ref in given)
    items = need.items or ((Item(need.expected, frozenset()),) if readable else ())
    if not items or not (
        readable or any(view.text(ref) for ref in (*said_before(view), *view.current_versions))
    ):
        blank = Item("", frozenset())
        return [
            Sought(view, need, item, given, frozenset(), by_descent=True)
            for item in items or (blank,)
        ]
    return [sought for item in items for sought in _bind(view, need, item, given)]


def _bind(view: View, need: Need, item: Item, given: tuple[str, ...]) -> list[Sought]:
    if not view.case.evidence_given:
        given = likely_evidence(view, item)
    keys = _key_words(view, item, given)
    plain = Sought(view, need, item, (), keys)
    stated = tuple(ref for ref in given if plain.holds(ref)) if item.tokens else ()
    everywhere = (
        _on_topic(view, need.question | keys, plain.among(said_before(view))) if item.tokens else ()
    )
    known = {ref: said for ref in given if (said := view.text(ref)) is not None}
    if stated and view.case.evidence_given and (parts := _parts_beside(item, known, stated)):
        return _each_part(view, need, parts)
    if stated or not given:
        told = replace(plain, sources=stated)
        again = tuple(ref for ref in everywhere if not given or _says_it_again(told, ref))
        sources = tuple(dict.fromkeys([*stated, *again]))
        words = _key_words(view, item, sources) if sources else keys
        return [Sought(view, need, item, sources, words)]
    if not known:
        return [Sought(view, need, item, given, keys, stated_in_evidence=False)]
    if item.temporal and (readings := _times_named(plain, given)):
        # the evidence names its own time: downstream is compared with that
        named = Item(item.text, item.tokens, readings)
        return [Sought(view, need, named, given, keys, stated_in_evidence=False)]
    parts = {} if item.temporal else _parts(item, known)
    if parts:
        return _each_part(view, need, parts)
    return [_paraphrased(view, need, item, given, list(known.values()))]


def _each_part(view: View, need: Need, parts: dict[str, Item]) -> list[Sought]:
    return [
        Sought(view, need, part, (ref,), _key_words(view, part, (ref,)))
        for ref, part in parts.items()
    ]


def _parts_beside(item: Item, known: dict[str, str], stated: tuple[str, ...]) -> dict[str, Item]:
    """The parts of an item where the messages that say most of it lack what others say."""
    told = frozenset().union(*(text.content_tokens(known.get(ref, "")) for ref in stated))
    lacking = item.tokens - told
    if item.temporal or not lacking:
        return {}
    others = (text.content_tokens(said) for ref, said in known.items() if ref not in stated)
    return _parts(item, known) if any(lacking <= tokens for tokens in others) else {}


def _says_it_again(told: Sought, ref: str) -> bool:
    """Whether a message besides the evidence says the same: it repeats most of one of its
    messages, or a sentence of it is about the need and says the item."""
    content = told.view.text(ref) or ""
    own = text.content_tokens(content)
    if told.is_exchanged(content):
        return False
    for other in told.sources:
        said = text.content_tokens(told.view.text(other) or "")
        if said and len(own & said) >= AGAIN * len(said):
            return True
    if told.item.temporal:
        return told.about(content)
    return any(told.about(part) and states(told.item, part) for part in text.sentences(content))


def _parts(item: Item, known: dict[str, str]) -> dict[str, Item]:
    """What each message says of an item that several say together, by message."""
    said = {ref: item.tokens & text.content_tokens(content) for ref, content in known.items()}
    pooled = frozenset().union(*said.values())
    if not item.tokens or len(pooled) < KEEPS * len(item.tokens):
        return {}
    found = {}
    for ref, own in said.items():
        others = frozenset().union(*(tokens for other, tokens in said.items() if other != ref))
        if own - others:
            found[ref] = replace(item, tokens=own - others)
    if not found:
        ref = max(said, key=lambda each: len(said[each]))
        found[ref] = replace(item, tokens=said[ref])
    return found


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
