"""Which questions have one truth: losing any message of their evidence loses the answer."""

from __future__ import annotations

from memtrace_collector.bench.dialogue import Dialogue, Question
from memtrace_collector.bench.stand_in.writing import TEMPORAL, needed_stems, stems

OPEN_DOMAIN = "open_domain"
_TOGETHER = 0.6
"""Share of the expected words that the messages of the evidence must say together."""


def is_well_posed(dialogue: Dialogue, question: Question) -> bool:
    """Whether a fault at one message of the evidence is the cause of a wrong answer.

    The messages must say most of the expected answer, unless it is worked out from a date or
    inferred. One that says nothing of its own would be missed by nobody: of several messages,
    each must say a word of the expected answer that none of the others says.
    """
    if not question.expected:
        return True
    said = [needed_stems(m, question) for m in dialogue.messages if m.id in question.evidence]
    if len(said) != len(question.evidence):
        return False
    if question.category in (OPEN_DOMAIN, TEMPORAL):
        return len(said) == 1
    wanted = wanted_stems(question)
    told = frozenset().union(
        *(stems(m.text) for m in dialogue.messages if m.id in question.evidence)
    )
    if not wanted or len(told & wanted) < _TOGETHER * len(wanted):
        return False
    return all(
        own - frozenset().union(*said[:place], *said[place + 1 :]) for place, own in enumerate(said)
    )


def wanted_stems(question: Question) -> frozenset[str]:
    """The expected answer's stems that are not the question's."""
    return stems(question.expected) - stems(question.text)
