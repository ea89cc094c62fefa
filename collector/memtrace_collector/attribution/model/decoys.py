"""Options that are not expected, and beside which the expected one does not stand out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memtrace_collector.attribution.model import hostile
from memtrace_collector.attribution.model.questions import DECOYS, MAX_OPTION_CHARACTERS
from memtrace_collector.attribution.texts import text

MOST = 5
_NUMBER = re.compile(r"\d+")
_SHIFTS = (3, -2, 11, 7)
_OPPOSITES = ("Yes", "No")
_LAST_RESORT = (
    "a small town by the sea",
    "an old friend from school",
    "three times a week",
    "a green mountain bike",
    "working at the hospital",
    "nothing in particular",
)
"""Where a model makes none and the expected answer has no number to change."""


def usable(proposed: Iterable[object], expected: str) -> tuple[str, ...]:
    """Those proposals that can stand beside the expected answer without being it."""
    shown = [hostile.clean(p, MAX_OPTION_CHARACTERS) for p in proposed if isinstance(p, str)]
    return tuple(dict.fromkeys(p for p in shown if _is_other(p, expected)))[:MOST]


def _is_other(option: str, expected: str) -> bool:
    said, wanted = text.content_tokens(option), text.content_tokens(expected)
    if wanted:
        return bool(said) and not wanted <= said
    says = text.polarity(option)
    return bool(said) or (says is not None and says is not text.polarity(expected))


def completed(options: tuple[str, ...], expected: str) -> tuple[str, ...]:
    """At least :data:`~.questions.DECOYS` options: those given, then the expected answer with
    other numbers, then plain ones."""
    shifted = [_shifted(expected, by) for by in _SHIFTS if _NUMBER.search(expected)]
    every = [*options, *usable([*_OPPOSITES, *shifted, *_LAST_RESORT], expected)]
    enough = max(DECOYS + 1, len(options))
    return tuple(dict.fromkeys(every))[:enough]


def _shifted(expected: str, by: int) -> str:
    return _NUMBER.sub(lambda found: str(abs(int(found[0]) + by)), expected)
