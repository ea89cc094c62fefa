"""What the stand-in answers, given what a context holds of the evidence."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memtrace_collector.bench.dialogue import Question
from memtrace_collector.bench.stand_in.oracle import Carrier, Reading
from memtrace_collector.demo.language import content_stems

DECLINES = (
    "I don't know.",
    "I don't have any information about that.",
    "That was never mentioned, as far as I can see.",
    "I'm sorry, there is nothing about this in what I remember.",
)
_WORDINGS = ("{}", "{}", "It was {}.", "From what I know: {}", "The answer is {}.")
_LONG = 6
"""From so many words on, an expected answer is a sentence and is said as it stands."""
_DISTRACTED_SHARE = 0.4
_LEAST_OVERLAP = 2
_LINE_MARK = re.compile(r"^(?:[-*•]\s+|\d+[.)]\s+|\[[^\]]*\]\s*)+")


@dataclass(frozen=True, slots=True)
class Said:
    """A reply and whether it is right: the stand-in knows what it said."""

    text: str
    right: bool


def judged(question: Question, said: Said) -> Said:
    """A reply that says all that is expected is right, by whatever way it came to say so."""
    wanted = set(content_stems(question.expected)) - set(content_stems(question.text))
    if said.right or not wanted:
        return said
    return Said(said.text, wanted <= set(content_stems(said.text)))


def reply_to(question: Question, reading: Reading, chance: random.Random) -> Said:
    """The reply of a model that makes no fault of its own."""
    if reading.misled:  # wrong whatever words it shares: it may say the opposite
        return Said(_misled(reading, reading.misled), False)
    if not question.expected:
        return Said(chance.choice(DECLINES), True)
    if not reading.missing:
        return Said(worded(question.expected, chance), True)
    return judged(question, _without_evidence(question, reading, chance))


def _misled(reading: Reading, believed: Carrier) -> str:
    """What a model says that believes a wrong text; of what else is missing it knows nothing."""
    if believed.reply in DECLINES or set(reading.missing) <= {believed.message}:
        return believed.reply
    texts = (carrier.text for carrier in (*reading.right, believed))
    return " ".join(dict.fromkeys(texts))


def worded(expected: str, chance: random.Random) -> str:
    """The expected answer in one of several wordings."""
    if len(expected.split()) >= _LONG:
        return expected
    return chance.choice(_WORDINGS).format(expected)


def other_line(question: Question, reading: Reading) -> str:
    """The line beside the evidence that shares most with the question; empty without one.

    A line that holds all that is expected is none: saying it would be right.
    """
    asked = set(content_stems(question.text))
    wanted = set(content_stems(question.expected)) - asked
    best, most = "", _LEAST_OVERLAP - 1
    for line in _lines(reading.rest):
        stems = set(content_stems(line))
        if wanted and wanted <= stems:
            continue
        if len(stems & asked) > most:
            best, most = line, len(stems & asked)
    return best


def _without_evidence(question: Question, reading: Reading, chance: random.Random) -> Said:
    if reading.right:  # some of it: a list with items missing, a step of two
        texts = dict.fromkeys(carrier.text for carrier in reading.right)
        return Said(" ".join(texts), False)
    line = other_line(question, reading)
    if line and chance.random() < _DISTRACTED_SHARE:
        return Said(line, False)
    return Said(chance.choice(DECLINES), False)


def _lines(rest: str) -> Sequence[str]:
    lines = (_LINE_MARK.sub("", line.strip()) for line in rest.split("\n"))
    return [line for line in lines if line and not line.endswith(":") and "…" not in line]
