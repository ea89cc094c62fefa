"""Which questions have one truth: losing any message of their evidence loses the answer."""

from __future__ import annotations

from memtrace_collector.bench.dialogue import Dialogue, Question
from memtrace_collector.bench.stand_in.writing import TEMPORAL, needed_stems
from memtrace_collector.demo.language import content_stems

_TOGETHER = 0.6
"""Share of the expected words that the messages of the evidence must say together."""


def is_well_posed(dialogue: Dialogue, question: Question) -> bool:
    """Whether a fault at one message of the evidence is the cause of a wrong answer.

    A message that says nothing of its own would be missed by nobody: of several messages, each
    must say a word of the expected answer that none of the others says.
    """
    if len(question.evidence) < 2:
        return True
    if question.category == TEMPORAL:
        return False
    said = [needed_stems(m, question) for m in dialogue.messages if m.id in question.evidence]
    if len(said) != len(question.evidence):
        return False
    for place, own in enumerate(said):
        others = frozenset().union(*said[:place], *said[place + 1 :])
        if not own - others:
            return False
    wanted = wanted_stems(question)
    return len(frozenset().union(*said) & wanted) >= _TOGETHER * len(wanted)


def wanted_stems(question: Question) -> frozenset[str]:
    """The expected answer's stems that are not the question's."""
    return frozenset(content_stems(question.expected)) - frozenset(content_stems(question.text))
