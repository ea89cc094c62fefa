"""The stand-in's reading: answer a question with the best sentence of the context."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from memtrace_collector.demo.language import content_stems

DONT_KNOW = "I don't know."
_ITEM = re.compile(r"- (?:\[[^\]]*\] )?(?P<text>.+)")
_QUESTION = re.compile(r"^Question: (?P<text>.+)$", re.MULTILINE)
_NEXT_PART = re.compile(r", and (?=wh)", re.IGNORECASE)
_MINIMUM_SHARE = 0.34
"""Share of the question's weight that a sentence must hold to count as an answer."""


def question_of(prompt: str) -> str:
    """The question of a prompt, empty when it has none."""
    found = _QUESTION.findall(prompt)
    return found[-1] if found else ""


def answer(prompt: str) -> str:
    """The items of ``prompt`` that answer its question, part by part, or :data:`DONT_KNOW`."""
    sections = _sections(prompt)
    found = []
    for part in _NEXT_PART.split(question_of(prompt)):
        titled = [title for title in sections if title and title in part.lower()]
        wanted = titled or [title for title in sections if title != "handbook"]
        best = _best(part, [item for title in wanted for item in sections[title]])
        if best:
            found.append(best)
    return " ".join(dict.fromkeys(found)) or DONT_KNOW


def _sections(prompt: str) -> dict[str, list[str]]:
    """The listed items of a prompt under the lower-case first word of their heading."""
    sections: dict[str, list[str]] = {}
    title = ""
    for line in prompt.splitlines():
        item = _ITEM.match(line)
        if item:
            sections.setdefault(title, []).append(item["text"])
        elif line.endswith(":"):
            title = line.split()[0].rstrip(":").lower()
    return sections


def _best(question: str, items: Sequence[str]) -> str | None:
    asked = dict.fromkeys(content_stems(question))  # in order: equal sums stay equal
    bags = [set(content_stems(item)) for item in items]
    seen = Counter(stem for bag in bags for stem in bag)
    weight = {stem: math.log(1 + len(items) / (1 + seen[stem])) for stem in asked}
    total = sum(weight.values())
    scores = [sum(weight[stem] for stem in asked if stem in bag) for bag in bags]
    best = max(range(len(items)), key=scores.__getitem__, default=None)
    if best is None or total == 0 or len(bags[best].intersection(asked)) < min(2, len(asked)):
        return None
    return items[best] if scores[best] / total >= _MINIMUM_SHARE else None
