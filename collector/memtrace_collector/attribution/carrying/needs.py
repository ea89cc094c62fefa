"""What the question needed: the expected answer, reduced to what must be found somewhere. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from memtrace_collector.attribution.texts import dates, text
from memtrace_collector.attribution.texts.dates import Interval
from memtrace_collector.attribution.texts.quantities import besides, durations

KEEPS = 0.75
"""Share of several needed words that must be there: wording differs, the rest is the same."""
DOUBTFUL = 0.5
MOST = 0.66
"""Share of a name's words that leaves it open whether another name is meant."""

_ASKS_WHEN = re.compile(
    r"\b(?:when|(?:what|which) (?:date|day|week|weekend|month|year|time)|how long ago)\b"
    r"|什么时候|何时|哪天|いつ|언제",
    re.IGNORECASE,
)
_INFERS = re.compile(
    r"\b(?:would|likely|might|could|should|can i|may i|is it (?:ok|safe|likely))\b", re.IGNORECASE
)
_AND = r"\b(?:and|und|et|y)\b"
_LIST_BREAK = re.compile(rf"\s*(?:[,;\n、，；]|{_AND}|&|和)+\s*", re.IGNORECASE)
_LIST_MARK = re.compile(rf"[;\n、；&和]|{_AND}|,.*,", re.IGNORECASE)
"""One comma alone makes no list: "Lisbon, Portugal" is one thing."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that had to be known: words, or a time.

    ``tokens`` are the needed words; ``intervals`` (temporal needs only) the acceptable times.
    """

    text: str
    tokens: frozenset[str]
    intervals: tuple[Interval, ...] = ()

    @property
    def temporal(self) -> bool:
        return bool(self.intervals)

    @property
    def durations(self) -> frozenset[int]:
        """The lengths of time that it names, in seconds."""
        return durations(self.text)


@dataclass(frozen=True, slots=True)
class Need:
    """A question's need. ``kind``: content, list, temporal, inference, unanswerable or unknown.

    ``question`` are the question's content words, ``asked`` its text.
    """

    kind: str
    asked: str
    expected: str
    question: frozenset[str]
    items: tuple[Item, ...] = ()


def needed_tokens(expected: str, question: frozenset[str]) -> frozenset[str]:
    """Expected words minus the question's words and names; all of them if none are left."""
    tokens = text.content_tokens(expected)
    return tokens - question or tokens


def _items(expected: str, question: frozenset[str]) -> tuple[Item, ...]:
    parts = [part for part in _LIST_BREAK.split(expected) if text.content_tokens(part) - question]
    if (
        len(parts) > 1
        and _LIST_MARK.search(expected)
        and all(len(text.content_tokens(part)) <= 4 for part in parts)
    ):
        return tuple(Item(part, needed_tokens(part, question)) for part in parts)
    tokens = needed_tokens(expected, question)
    return (Item(expected, tokens),) if tokens else ()


def _intervals(expected: str, asked_on: date | None) -> tuple[Interval, ...]:
    """The times that an expected answer names; a year beside a day of it says only which."""
    named = [r for phrase in dates.phrases(expected, asked_on) for r in phrase.readings]
    return tuple(
        r for r in named if not any(r != other and dates.encloses(r, other) for other in named)
    )


def asks_when(asked: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_WHEN.search(asked) is not None


def classify(asked: str, expected: str | None, asked_on: date | None = None) -> Need:
    """The need of a question.

    ``expected=None``: not said what would have been right (kind ``unknown``). ``asked_on``: the
    day from which relative words of the expected answer count.
    """
    question = text.content_tokens(asked)
    if expected is None:
        return Need("unknown", asked, "", question)
    expected = text.normalise(expected).strip()
    if not expected or (text.declines(expected) and len(text.content_tokens(expected)) <= 6):
        return Need("unanswerable", asked, expected, question)
    if (asks_when(asked) or not asked) and (intervals := _intervals(expected, asked_on)):
        item = Item(expected, needed_tokens(expected, question), intervals)
        return Need("temporal", asked, expected, question, (item,))
    items = _items(expected, question)
    inferred = bool(_INFERS.search(asked)) or text.polarity(expected) is not None
    kind = "inference" if inferred else "list" if len(items) > 1 else "content"
    return Need(kind, asked, expected, question, items)


def states(item: Item, value: str) -> bool | None:
    """Whether a text states the item's words: yes, no, or (``None``) partly.

    A text without the item's numbers, or with less than most of its names, does not state it.
    """
    missing = item.tokens - text.content_tokens(value)
    if missing and item.durations and item.durations & durations(value):
        missing &= text.content_tokens(besides(item.text))
    if not missing:
        return not _lasts_otherwise(item, value)
    share = 1 - len(missing) / len(item.tokens)
    if share < DOUBTFUL:
        return False
    name_missing = bool(missing & text.proper_names(f"x {item.text}"))
    if text.numbers(missing) or share < (MOST if name_missing else DOUBTFUL):
        return False
    if name_missing:
        return None
    return True if share >= KEEPS else None


def _lasts_otherwise(item: Item, value: str) -> bool:
    """Whether a sentence names another length of time than the item, whatever else it numbers."""
    lasting = durations(value) if item.durations else frozenset()
    return bool(lasting) and lasting.isdisjoint(item.durations) and len(text.sentences(value)) == 1


def answered(need: Need, reply: str, asked_on: date | None) -> bool | None:
    """Whether a reply gives what was needed: yes, no, or (``None``) it cannot be told.

    Built to err towards yes: who answered rightly in other words must not be blamed.
    """
    declined = text.declines(reply)
    if need.kind == "unanswerable":
        return declined
    if not need.items:
        return False if declined else _same_polarity(need.expected, reply) or None
    found = [_answers(item, reply, asked_on) for item in need.items]
    if all(found):
        return False if _contradicts(need, reply) else None if declined else True
    if text.polarity(need.expected) is not None and not declined and not _opposes(need, reply):
        return None  # the yes or no counts; why may be said in any words
    if declined or (len(found) > 1 and False in found):
        return False
    if _in_another_script(need.expected, reply):
        return None
    return None if None in found or _only_part(need, reply) else False


def _in_another_script(expected: str, reply: str) -> bool:
    """Whether two texts share no letters: in another language nothing is compared by words."""
    wanted, said = text.scripts(expected), text.scripts(reply)
    return bool(wanted and said) and wanted.isdisjoint(said)


def _answers(item: Item, reply: str, asked_on: date | None) -> bool | None:
    if item.temporal:
        readings = [r for phrase in dates.phrases(reply, asked_on) for r in phrase.readings]
        if readings:
            return dates.matches(item.intervals, readings) or _less_exact(item, readings)
    return states(item, reply)


def _less_exact(item: Item, said: list[Interval]) -> bool | None:
    """``None`` when a reply names a longer time around the expected one."""
    return None if any(dates.encloses(r, want) for want in item.intervals for r in said) else False


def _same_polarity(expected: str, reply: str) -> bool:
    return text.polarity(expected) is not None and text.polarity(expected) == text.polarity(reply)


def _opposes(need: Need, reply: str) -> bool:
    opening, wanted = text.polarity(reply), text.polarity(need.expected)
    return opening is not None and wanted is not None and opening != wanted


def _contradicts(need: Need, reply: str) -> bool:
    tokens = frozenset().union(*(item.tokens for item in need.items))
    if _opposes(need, reply):
        return True
    return text.negated(reply, tokens) != text.negated(need.expected, tokens)


def _only_part(need: Need, reply: str) -> bool:
    """Whether a reply says less than expected and nothing else: right as far as it goes."""
    said = reply_content(need, reply)
    return need.kind != "temporal" and bool(said) and said <= text.content_tokens(need.expected)


def reply_content(need: Need, reply: str) -> frozenset[str]:
    """What the reply asserts beyond the question's words."""
    return text.content_tokens(reply) - need.question
