"""A prompt as messages in which the recorded values are marked, and edits of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

MIN_MARKED_CHARACTERS = 3
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_MAX_GAP = 80
"""Characters between two items on one line that may be what separates items."""


class Mark(NamedTuple):
    """Where a value stands in a message: ``text[start:end]``."""

    start: int
    end: int
    ref: str


@dataclass(frozen=True, slots=True)
class Message:
    """``role``: system, user, assistant or tool. ``marks``: in order, never overlapping."""

    role: str
    text: str
    marks: tuple[Mark, ...] = ()

    def mark_of(self, ref: str) -> Mark | None:
        return next((mark for mark in self.marks if mark.ref == ref), None)


def marked(role: str, text: str, values: Mapping[str, str]) -> Message:
    """A message with the values that stand in it word for word, the longest first."""
    taken: list[Mark] = []
    for ref, content in sorted(values.items(), key=lambda item: (-len(item[1]), item[0])):
        if len(content) < MIN_MARKED_CHARACTERS:
            continue
        start = text.find(content)
        while start >= 0:
            end = start + len(content)
            if all(end <= mark.start or mark.end <= start for mark in taken):
                taken.append(Mark(start, end, ref))
                break
            start = text.find(content, start + 1)
    return Message(role, text, tuple(sorted(taken)))


def spliced(message: Message, start: int, end: int, text: str, ref: str = "") -> Message:
    """``message`` with ``text[start:end]`` replaced; marks inside are gone, later ones move.

    ``ref``: the new text is this value.
    """
    by = len(text) - (end - start)
    kept = [mark for mark in message.marks if mark.end <= start]
    later = [
        Mark(mark.start + by, mark.end + by, mark.ref)
        for mark in message.marks
        if mark.start >= end
    ]
    new = [Mark(start, start + len(text), ref)] if ref else []
    changed = message.text[:start] + text + message.text[end:]
    return replace(message, text=changed, marks=tuple(kept + new + later))


def replaced(message: Message, old: str, ref: str, text: str, day: date | None) -> Message | None:
    """The value ``old`` with another text in its place, and the date of its line made right."""
    mark = message.mark_of(old)
    if mark is None:
        return None
    start, _ = _line(message, mark)
    if "\n" not in message.text[mark.start : mark.end]:
        text = _in_one_line(text)
    changed = spliced(message, mark.start, mark.end, text, ref)
    lead = message.text[start : mark.start]
    dated = _with_day(lead, day)
    return spliced(changed, start, mark.start, dated) if dated != lead else changed


def removed(message: Message, old: str) -> Message | None:
    """Without a value: with its whole line when it has the line to itself."""
    mark = message.mark_of(old)
    if mark is None:
        return None
    start, end = _line(message, mark)
    if not _alone(message, mark):
        return spliced(message, mark.start, mark.end, "")
    if end < len(message.text):
        return spliced(message, start, end + 1, "")
    return spliced(message, max(0, start - 1), end, "")


def inserted(
    message: Message,
    beside: str,
    ref: str,
    text: str,
    day: date | None,
    *,
    after: bool,
) -> Message | None:
    """A value put after (or before) another one, in the form in which that one is written."""
    mark = message.mark_of(beside)
    if mark is None:
        return None
    if not _alone(message, mark):
        gap = _gap(message, mark)
        at = mark.end if after else mark.start
        written = gap + text if after else text + gap
        begin = at + len(gap) if after else at
        return _with_mark(spliced(message, at, at, written), begin, len(text), ref)
    start, end = _line(message, mark)
    lead, tail = message.text[start : mark.start], message.text[mark.end : end]
    lead = _with_day(lead, day)
    text = _in_one_line(text)
    line = f"{lead}{text}{tail}"
    at = end if after else start
    written = f"\n{line}" if after else f"{line}\n"
    begin = at + len(lead) + (1 if after else 0)
    return _with_mark(spliced(message, at, at, written), begin, len(text), ref)


def dated(message: Message, ref: str, day: date) -> Message | None:
    """A value with its date written before it."""
    mark = message.mark_of(ref)
    return spliced(message, mark.start, mark.start, f"[{day.isoformat()}] ") if mark else None


def appended(message: Message, ref: str, text: str, before: str = "") -> Message:
    """A value as a line of its own at the end of a message, or before where ``before`` stands."""
    at = message.text.rfind(before) if before else -1
    if at < 0:
        lead = "\n- " if message.text and not message.text.endswith("\n") else "- "
        end = len(message.text)
        return _with_mark(spliced(message, end, end, lead + text), end + len(lead), len(text), ref)
    start = message.text.rfind("\n", 0, at) + 1
    return _with_mark(spliced(message, start, start, f"- {text}\n"), start + 2, len(text), ref)


def has_day(text: str) -> bool:
    """Whether a text names a day as prompts stamp their items (ISO 8601)."""
    return _DATE.search(text) is not None


def joined(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages)


def _with_mark(message: Message, start: int, length: int, ref: str) -> Message:
    return replace(message, marks=tuple(sorted((*message.marks, Mark(start, start + length, ref)))))


def _line(message: Message, mark: Mark) -> tuple[int, int]:
    start = message.text.rfind("\n", 0, mark.start) + 1
    end = message.text.find("\n", mark.end)
    return start, len(message.text) if end < 0 else end


def _alone(message: Message, mark: Mark) -> bool:
    start, end = _line(message, mark)
    return all(m.end <= start or m.start >= end or m == mark for m in message.marks)


def _gap(message: Message, mark: Mark) -> str:
    """What separates this item from its neighbour on the same line."""
    place = message.marks.index(mark)
    for first, second in ((place - 1, place), (place, place + 1)):
        if first >= 0 and second < len(message.marks):
            gap = message.text[message.marks[first].end : message.marks[second].start]
            if len(gap) <= _MAX_GAP and "\n" not in gap:
                return gap
    return "; "


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _with_day(lead: str, day: date | None) -> str:
    """The start of an item's line with the item's own date where it names one."""
    return _DATE.sub(day.isoformat(), lead) if day is not None else lead
