"""The part of a dialogue that a case plays: the evidence and enough around it."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from memtrace_collector.bench.dialogue import Dialogue, Message, Question
from memtrace_collector.bench.stand_in.writing import needed_stems, stems

SMALLEST, LARGEST = 25, 60
"""Messages in a window."""
_AROUND = 4
_SAME, _SAME_OF_MANY, _MANY = 0.5, 0.34, 4
"""Share of the needed words that says it again; less where many words are needed."""
_LONGEST = 2_500
"""Characters: a longer distractor would be most of the prompt."""


def window(dialogue: Dialogue, question: Question, chance: random.Random) -> tuple[Message, ...]:
    """Messages in order, all before the question: those around the evidence, and distractors.

    A distractor that says itself much of what a message of the evidence says is left out: with
    it, losing the evidence would not lose the answer. Empty when the dialogue is too short.
    """
    before = [message for message in dialogue.messages if message.said_at < question.asked_at]
    wanted = set(question.evidence) | set(question.near)
    places = [place for place, message in enumerate(before) if message.id in wanted]
    if len(places) < len(wanted):
        return ()
    needs = [
        needed
        for message in before
        if message.id in question.evidence and (needed := needed_stems(message, question))
    ]
    allowed = [p for p, m in enumerate(before) if m.id in wanted or _is_distractor(m, needs)]
    size = chance.randint(SMALLEST, LARGEST)
    chosen = _chosen(set(allowed), places, size, chance)
    return tuple(before[place] for place in chosen) if len(chosen) >= SMALLEST else ()


def _is_distractor(message: Message, needs: Sequence[frozenset[str]]) -> bool:
    if len(message.text) > _LONGEST:
        return False
    said = stems(message.text).union(*map(stems, message.facts))
    return not any(_is_again(needed & said, needed) for needed in needs)


def _is_again(said: frozenset[str], needed: frozenset[str]) -> bool:
    share = _SAME if len(needed) < _MANY else _SAME_OF_MANY
    return len(said) >= share * len(needed)


def _chosen(
    allowed: Collection[int], places: Sequence[int], size: int, chance: random.Random
) -> list[int]:
    """The evidence, then its neighbours, then stretches from all over."""
    chosen = set(places)
    near = [p + step for p in places for step in range(-_AROUND, _AROUND + 1)]
    for place in near:
        if place in allowed and len(chosen) < size:
            chosen.add(place)
    left = sorted(set(allowed) - chosen)
    while left and len(chosen) < size:
        start = chance.randrange(len(left))
        for place in left[start : start + _AROUND]:
            if len(chosen) < size:
                chosen.add(place)
        del left[start : start + _AROUND]
    return sorted(chosen)
