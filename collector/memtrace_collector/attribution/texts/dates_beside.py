"""Periods beside or inside a date: "the week before 9 June", "first weekend of May". Pure."""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta
from typing import NamedTuple

from memtrace_collector.attribution.texts.intervals import Interval, day, span

_WEEKDAYS = {name.lower(): n for n, name in enumerate(calendar.day_name)}
_COUNTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "a few": 3, "few": 3}
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}
_PARTS = {
    "early": 0,
    "beginning of": 0,
    "start of": 0,
    "mid": 1,
    "middle of": 1,
    "late": 2,
    "end of": 2,
}
_LONGEST = 40
_LEAD = re.compile(
    r"(?:\bthe\s+)?(?:\b(?P<n>\d{1,2}|" + "|".join(_COUNTS) + r")\s+)?"
    r"\b(?P<unit>day|night|evening|week|weekend|month|" + "|".join(_WEEKDAYS) + r")s?\s+"
    r"(?P<side>before|after|prior\s+to|following)\s+(?:the\s+)?$"
    r"|\b(?:the\s+)?(?P<nth>" + "|".join(_ORDINALS) + r")\s+(?P<part>weekend|week|half)\s+of\s+$"
    r"|\b(?:the\s+)?(?P<third>" + "|".join(_PARTS) + r")[\s-]+$",
    re.IGNORECASE,
)


class Lead(NamedTuple):
    """The words before a date that move or narrow it; ``start`` is where they begin."""

    match: re.Match[str]
    start: int


def lead_before(text: str, start: int) -> Lead | None:
    """The lead that ends where a date begins."""
    begin = max(0, start - _LONGEST)
    found = _LEAD.search(text[begin:start])
    return Lead(found, begin + found.start()) if found else None


def beside(lead: Lead, reading: Interval) -> Interval | None:
    """The period that a lead names with a date; None when there is no such period."""
    match = lead.match
    if match["unit"]:
        return _relative_to(match, reading)
    if match["third"]:
        return _third(_PARTS[" ".join(match["third"].lower().split())], reading)
    return _nth(_ORDINALS[match["nth"].lower()], match["part"].lower(), reading)


def _relative_to(match: re.Match[str], reading: Interval) -> Interval:
    unit, before = match["unit"].lower(), match["side"].lower() in ("before", "prior to")
    said = (match["n"] or "one").lower()
    count = int(said) if said.isdigit() else _COUNTS[said]
    sign = -1 if before else 1
    edge = reading.start if before else reading.end
    if unit in _WEEKDAYS or unit == "weekend":
        first = _WEEKDAYS.get(unit, 5)
        away = (edge.weekday() - first) % 7 if before else (first - edge.weekday()) % 7
        nearest = edge + sign * timedelta(days=(away or 7) + 7 * (count - 1))
        return span(nearest, 2) if unit == "weekend" else day(nearest)
    if unit in ("week", "month") and count == 1:
        days = 7 if unit == "week" else 31
        near = edge + timedelta(days=sign)
        return Interval(*sorted((near, edge + sign * timedelta(days=days))))
    days = count * {"week": 7, "month": 30}.get(unit, 1)
    slack = timedelta(days=3 if days != count else 2 if said == "a few" else 0)
    center = edge + sign * timedelta(days=days)
    return Interval(center - slack, center + slack)


def _third(part: int, reading: Interval) -> Interval | None:
    if reading.days < 28:
        return reading
    length = reading.days // 3
    start = reading.start + timedelta(days=part * length)
    return Interval(start, reading.end if part == 2 else start + timedelta(days=length))


def _nth(nth: int, part: str, reading: Interval) -> Interval | None:
    if reading.days < 14:
        return reading
    if part == "half":
        middle = reading.start + timedelta(days=reading.days // 2 - 1)
        first = Interval(reading.start, middle)
        return first if nth == 0 else Interval(middle + timedelta(days=1), reading.end)
    if part == "weekend":
        return _weekend(nth, reading)
    if nth < 0:
        return Interval(reading.end - timedelta(days=6), reading.end)
    return span(reading.start + timedelta(weeks=nth), 7)


def _weekend(nth: int, reading: Interval) -> Interval | None:
    saturdays: list[date] = []
    each = reading.start + timedelta(days=(5 - reading.start.weekday()) % 7)
    while each <= reading.end:
        saturdays.append(each)
        each += timedelta(weeks=1)
    return span(saturdays[nth], 2) if -len(saturdays) <= nth < len(saturdays) else None
