"""What the stand-in writes of a message: facts in the third person, with dates, and stamped lines.

The words that a fact must hold to carry a question's answer are worked out here too, so that the
stand-in knows of every text it wrote whether it carries what is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from memtrace_collector.bench.dialogue import Message, Question
from memtrace_collector.demo.extraction import rephrase
from memtrace_collector.demo.language import content_stems, sentences, words

TEMPORAL = "temporal"
_RELATIVE_DAYS = {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_RELATIVE = re.compile(rf"\b({'|'.join(_RELATIVE_DAYS)})\b", re.IGNORECASE)
_TIME_WORD = re.compile(
    r"\b(yesterday|today|tonight|tomorrow|last|next|ago|since|week(?:end)?s?|months?|years?|days?|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|"
    r"august|september|october|november|december|recently|just|now|\d{4})\b",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"\b(is|was|are|were|has|have|had|will|would|can|could|does|did|should)\b(?! not\b)"
)
_MOST_FACTS = 2
_LEAST_WORDS = 4
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """A text that the stand-in extracts of a message. ``carries``: what the question needs."""

    text: str
    message: str
    carries: bool


def day(moment: datetime) -> str:
    """The day of ``moment`` as people write it, whatever the machine's language: 7 May 2023."""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def stamped(message: Message) -> str:
    """A message as one line of a prompt: day, speaker, text."""
    return f"[{day(message.said_at)}] {message.speaker}: {message.text}"


@lru_cache(maxsize=50_000)
def stems(text: str) -> frozenset[str]:
    """The stems of a text, as a set."""
    return frozenset(content_stems(text))


def needed_stems(message: Message, question: Question) -> frozenset[str]:
    """Stems of the expected answer that this evidence message says itself.

    Empty where it says it in other words: then only a text that keeps all of its best sentence
    carries it.
    """
    told = stems(message.text).union(*map(stems, message.facts))
    return (stems(question.expected) - stems(question.text)) & told


def facts_of(message: Message, question: Question) -> tuple[Fact, ...]:
    """What is to be remembered of ``message``.

    The data's own facts where it has some. An evidence message gets one fact that carries the
    answer, rewritten from its own sentences where none of the data's does, and none that says
    half of it: a fault at the one must lose the answer.
    """
    texts = list(message.facts) or [
        rewritten(sentence, message) for sentence in _worth_keeping(message)[:_MOST_FACTS]
    ]
    texts = list(dict.fromkeys(texts))
    if message.id not in question.evidence:
        return tuple(Fact(text, message.id, False) for text in texts)
    needed = needed_stems(message, question)
    if not needed and message.facts and question.category != TEMPORAL:
        return (Fact(" ".join(texts), message.id, True),)
    dated = question.category == TEMPORAL
    carrying = [] if dated else [text for text in texts if _holds(text, needed)]
    right = carrying[0] if carrying else _whole(message, question, needed)
    spoken_of = (needed | set(content_stems(question.text))) - set(content_stems(message.speaker))
    others = [text for text in texts if spoken_of.isdisjoint(content_stems(text))]
    return (Fact(right, message.id, True), *(Fact(text, message.id, False) for text in others))


def takes_not(text: str) -> bool:
    """The statement has a verb that takes a plain "not"."""
    return bool(_AUXILIARY.search(text))


def negated(text: str) -> str:
    """The opposite of a statement."""
    changed, count = _AUXILIARY.subn(r"\1 not", text, count=1)
    return changed if count else f"It is not so that {text}"


def carrying_sentences(message: Message, question: Question) -> tuple[str, ...]:
    """Sentences of an evidence message that carry, each alone, what the question needs of it."""
    needed = needed_stems(message, question)
    return tuple(s for s in sentences(message.text) if _holds(s, needed))


def rewritten(text: str, message: Message) -> str:
    """``text`` in the third person, its relative days resolved, or the day it was said added."""
    name = message.speaker
    third = rephrase(text)
    third = re.sub(r"\b[Tt]he user\b|\bUser\b", name, third)
    third = re.sub(r"\b[Uu]ser's\b", f"{name}'s", third).rstrip()
    if name not in third:
        third = f"{name}: {third}"
    resolved = _RELATIVE.sub(lambda match: _with_day(match.group(), message.said_at), third)
    said = f" (said on {day(message.said_at)})"
    return resolved if resolved != third else third.rstrip(".!") + said


def _with_day(phrase: str, said_at: datetime) -> str:
    return f"{phrase} ({day(said_at + timedelta(days=_RELATIVE_DAYS[phrase.lower()]))})"


def _holds(text: str, needed: frozenset[str]) -> bool:
    return bool(needed) and needed <= set(content_stems(text))


def _worth_keeping(message: Message) -> list[str]:
    return [
        sentence
        for sentence in sentences(message.text)
        if not sentence.endswith("?") and len(words(sentence)) >= _LEAST_WORDS
    ]


def _whole(message: Message, question: Question, needed: frozenset[str]) -> str:
    """The sentences that together say what is needed, as one dated fact."""
    asked = set(content_stems(question.text))
    parts = sentences(message.text) or [message.text]
    bags = {part: set(content_stems(part)) for part in parts}
    chosen: list[str] = []
    left = set(needed)
    while left:
        best = max(parts, key=lambda part: (len(bags[part] & left), len(bags[part] & asked)))
        if not bags[best] & left:
            break
        chosen.append(best)
        left -= bags[best]
    if not needed or left:
        chosen.append(max(parts, key=lambda part: len(bags[part] & asked)))
    if question.category == TEMPORAL:
        chosen += [part for part in parts if _TIME_WORD.search(part)][:2]
    if left:
        chosen += [fact for fact in message.facts if left & set(content_stems(fact))]
    kept = [part for part in (*parts, *message.facts) if part in chosen]
    return rewritten(" ".join(dict.fromkeys(kept)), message)
