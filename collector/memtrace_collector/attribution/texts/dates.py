"""Times named in a text, as intervals of whole days: pure.

A phrase is resolved against the moment from which relative words in its text count. Where a
phrase leaves the year or the direction open ("in March", "on Friday"), both readings are
returned: compatibility asks whether one of them fits.
"""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from memtrace_collector.attribution.texts import dates_elsewhere
from memtrace_collector.attribution.texts.dates_beside import Lead, beside, lead_before
from memtrace_collector.attribution.texts.intervals import (
    Interval,
    Readings,
    Resolver,
    Rule,
    around,
    compatible,
    day,
    encloses,
    make_date,
    matches,
    month,
    nearest,
    shift_months,
    span,
    week,
)
from memtrace_collector.attribution.texts.text import normalise

__all__ = ["Interval", "Phrase", "compatible", "encloses", "matches", "nearest", "phrases"]

_MONTHS = (
    {name.lower(): n for n, name in enumerate(calendar.month_name) if name}
    | {name.lower(): n for n, name in enumerate(calendar.month_abbr) if name}
    | {"sept": 9}
)
_WEEKDAYS = {name.lower(): n for n, name in enumerate(calendar.day_name)} | {"tues": 1, "thurs": 3}
_SMALL_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_SMALL = {word: value for value, word in enumerate(_SMALL_WORDS.split())} | {"a": 1, "an": 1}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""First months, in the northern half of the world."""
_M = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_W = "(?P<weekday>" + "|".join(sorted(_WEEKDAYS, key=len, reverse=True)) + ")"
_N = (
    r"(?P<n>\d{1,3}|"
    + "|".join(sorted(_SMALL, key=len, reverse=True))
    + r"|a couple of|a few|several)"
)
_UNIT = r"(?P<unit>day|week|month|year)s?"

MAX_PHRASES = 500
_KEPT_CHARACTERS = 2_000
"""Longer texts are read anew: what is kept stays bounded."""


class Phrase(NamedTuple):
    """A time expression: one or more readings, and whether it depends on the anchor."""

    text: str
    readings: tuple[Interval, ...]
    relative: bool
    start: int


def _ymd(match: re.Match[str], _: date | None) -> Readings:
    made = make_date(int(match["y"]), int(match["m"]), int(match["d"]))
    return [day(made)] if made else []


def _slashed(match: re.Match[str], _: date | None) -> Readings:
    first, second, year = int(match["a"]), int(match["b"]), int(match["y"])
    year += 2000 if year < 100 else 0
    made = {make_date(year, first, second), make_date(year, second, first)} - {None}
    return [day(value) for value in sorted(filter(None, made))]


def _day_month(match: re.Match[str], anchor: date | None) -> Readings:
    number, of_month = _MONTHS[match["month"].lower()], int(match["d"])
    if match["y"]:
        made = make_date(int(match["y"]), number, of_month)
        return [day(made)] if made else []
    years = [] if anchor is None else [anchor.year - 1, anchor.year, anchor.year + 1]
    days = [made for year in years if (made := make_date(year, number, of_month))]
    return [day(made) for made in days if anchor and abs((made - anchor).days) <= 366]


def _month_year(match: re.Match[str], _: date | None) -> Readings:
    return [month(int(match["y"]), _MONTHS[match["month"].lower()])]


def _month_only(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    number = _MONTHS[match["month"].lower()]
    return [
        reading
        for year in (anchor.year - 1, anchor.year, anchor.year + 1)
        if (reading := month(year, number)).distance(day(anchor)) <= 366
    ]


def _year(match: re.Match[str], _: date | None) -> Readings:
    year = int(match["y"])
    return [Interval(date(year, 1, 1), date(year, 12, 31))]


_DAY_NAMES = """
    today:0 tonight:0 this_morning:0 this_afternoon:0 this_evening:0 just_now:0 yesterday:-1
    last_night:-1 the_day_before_yesterday:-2 day_before_yesterday:-2 tomorrow:1
    the_day_after_tomorrow:2 day_after_tomorrow:2
"""
_NAMED_DAYS = {
    name.replace("_", " "): int(days)
    for name, _, days in (pair.partition(":") for pair in _DAY_NAMES.split())
}


def _named_day(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    return [day(anchor + timedelta(days=_NAMED_DAYS[re.sub(r"\s+", " ", match[0].lower())]))]


def _counted(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    word = match["n"].lower()
    vague = word in ("a few", "several")
    count = (
        int(word)
        if word.isdigit()
        else {"a couple of": 2, "a few": 3, "several": 4}.get(word) or _SMALL[word]
    )
    sign = -1 if match["past"] else 1
    unit = match["unit"].lower()
    if unit == "day":
        return [around(anchor + timedelta(days=sign * count), 2 if vague else 0)]
    if unit == "week":
        center = anchor + timedelta(weeks=sign * count)
        return [around(center, 10)] if vague else [around(center, 1), around(center, 3)]
    if unit == "month":
        moved = shift_months(anchor, sign * count)
        exact = [] if vague else [around(moved, 1)]
        return [*exact, around(moved, 45 if vague else 15), month(moved.year, moved.month)]
    year = anchor.year + sign * count
    if not date.min.year < year < date.max.year:
        return []
    return [Interval(date(year, 1, 1), date(year, 12, 31))]


def _period(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}[
        match["which"].lower()
    ]
    unit = match["unit2"].lower()
    if unit == "week":
        rolling = {
            -1: [span(anchor - timedelta(days=7), 7)],
            0: [],
            1: [span(anchor + timedelta(days=1), 7)],
        }
        return [week(anchor, step), *rolling[step]]
    if unit == "weekend":
        saturday = anchor - timedelta(days=anchor.weekday()) + timedelta(days=5)
        return [span(saturday + timedelta(weeks=step), 2)]
    if unit == "month":
        moved = shift_months(anchor, step)
        return [month(moved.year, moved.month)]
    return [Interval(date(anchor.year + step, 1, 1), date(anchor.year + step, 12, 31))]


def _before_last(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    whole = week(anchor, -2)
    weekend = match["unit3"].lower() == "weekend"
    return [Interval(whole.start + timedelta(days=5), whole.end) if weekend else whole]


def _season(match: re.Match[str], anchor: date | None) -> Readings:
    first = _SEASONS[match["season"].lower()]
    if match["y"]:
        years = [int(match["y"])]
    elif anchor is None:
        return []
    else:
        years = [anchor.year - 1, anchor.year]
    found = [_three_months(year, first) for year in years]
    which = (match["which"] or "").lower()
    if match["y"] or anchor is None:
        return found
    if which in ("next", "coming"):
        return [_three_months(anchor.year + more, first) for more in (0, 1)]
    return [each for each in found if each.start <= anchor]


def _three_months(year: int, first: int) -> Interval:
    start = date(year, first, 1)
    return Interval(start, shift_months(start, 3) - timedelta(days=1))


def _day_of_month(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    days = [shift_months(anchor.replace(day=1), more) for more in (-1, 0, 1)]
    made = [make_date(each.year, each.month, int(match["d"])) for each in days]
    return [day(each) for each in made if each]


def _weekday(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    ahead = (_WEEKDAYS[match["weekday"].lower()] - anchor.weekday()) % 7
    following = anchor + timedelta(days=ahead or 7)
    preceding = anchor - timedelta(days=7 - ahead if ahead else 7)
    which = (match["which"] or "").lower()
    if which in ("last", "past", "previous"):
        return [day(preceding)] + ([day(preceding - timedelta(days=7))] if 7 - ahead < 4 else [])
    if which in ("next", "coming"):
        return (
            [day(following), day(following + timedelta(days=7))] if ahead < 5 else [day(following)]
        )
    if which == "this":
        return [day(anchor + timedelta(days=ahead))]
    return [day(preceding), day(anchor + timedelta(days=ahead)), day(following)]


_MONTH_ALONE = re.compile(
    r"\b(?:[Ii]n|[Ss]ince|[Dd]uring|until|by|from|[Ll]ast|[Nn]ext|this|early|mid|late|of)[ -]"
    "(?P<month>" + "|".join(name for name in calendar.month_name if name) + r")(?=\W|$)"
)
"""Without a day or year only a capital and a preposition tell "May" from "may"."""
_YEAR = r"(?P<y>(?:19|20)\d\d)"
_DAY = r"(?P<d>\d\d?)(?:st|nd|rd|th)?"
_WHICH = "(?P<which>last|past|previous|this|next|coming)"
_ANY_NAMED_DAY = "|".join(
    rf"\b{name}\b".replace(" ", r"\s+") for name in sorted(_NAMED_DAYS, key=len, reverse=True)
)
_PATTERNS: tuple[tuple[str, Resolver, bool], ...] = (
    (rf"\b{_YEAR}[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)(?=\D|T|$)", _ymd, False),
    (r"\b(?P<a>\d\d?)[/.](?P<b>\d\d?)[/.](?P<y>(?:19|20)?\d\d)\b", _slashed, False),
    (rf"\b{_DAY}(?:\s+of)?\s*{_M}(?:,?\s*{_YEAR})?\b", _day_month, False),
    (rf"\b{_M}\s+{_DAY}(?!\d)(?:,?\s+{_YEAR})?\b", _day_month, False),
    (rf"\b{_M},?\s*(?:of\s+)?{_YEAR}\b", _month_year, False),
    (_ANY_NAMED_DAY, _named_day, True),
    (rf"\b{_N}\s+{_UNIT}\s+(?P<past>ago|back|earlier)\b", _counted, True),
    (rf"\bin\s+{_N}\s+{_UNIT}(?P<past>)(?='s time|\b)(?!\s+ago)", _counted, True),
    (r"\bthe\s+(?P<unit3>weekend|week)\s+before\s+last\b", _before_last, True),
    (
        rf"\b(?:{_WHICH}\s+|in\s+(?:the\s+)?|during\s+(?:the\s+)?|of\s+)"
        rf"(?P<season>spring|summer|autumn|fall|winter)(?:\s+(?:of\s+)?{_YEAR})?\b",
        _season,
        True,
    ),
    (
        rf"\b(?P<which>)(?P<season>spring|summer|autumn|fall|winter)\s+(?:of\s+)?{_YEAR}\b",
        _season,
        False,
    ),
    (rf"\b{_WHICH}\s+(?P<unit2>weekend|week|month|year)\b", _period, True),
    (rf"\b(?:{_WHICH}\s+)?{_W}\b", _weekday, True),
    (r"\bon\s+the\s+(?P<d>[0-3]?\d)(?:st|nd|rd|th)\b", _day_of_month, True),
    (rf"(?<![\w.,$€£-]){_YEAR}(?![\w%]|[.,]\d)", _year, False),
)
_RULES: tuple[Rule, ...] = (
    *dates_elsewhere.RULES,
    *(Rule(re.compile(pattern, re.IGNORECASE), made, rel) for pattern, made, rel in _PATTERNS),
    Rule(_MONTH_ALONE, _month_only, False),
)
"""The more specific first: what one has taken is not looked at by the next."""


def phrases(text: str, anchor: date | None) -> tuple[Phrase, ...]:
    """The first :data:`MAX_PHRASES` time expressions of each form, in order of the text.

    Relative ones need an anchor to be resolved; without one they have no readings.
    """
    return (_phrases_kept if len(text) <= _KEPT_CHARACTERS else _phrases)(text, anchor)


def _phrases(text: str, anchor: date | None) -> tuple[Phrase, ...]:
    text = normalise(text)
    taken = bytearray(len(text))
    found: list[Phrase] = []
    for rule in _RULES:
        for match in islice(rule.pattern.finditer(text), MAX_PHRASES):
            start, end = match.span()
            if start == end or any(taken[start:end]):
                continue
            lead = lead_before(text, start)
            try:
                readings = _resolved(rule, match, anchor, lead)
            except (OverflowError, ValueError):
                continue
            if readings or anchor is None:
                start = lead.start if lead else start
                taken[start:end] = b"\x01" * (end - start)
                found.append(Phrase(text[start:end], readings, rule.relative, start))
    return tuple(sorted(found, key=lambda phrase: phrase.start))


_phrases_kept = lru_cache(maxsize=8_192)(_phrases)


def days_named(text: str) -> list[date]:
    """The single days that a text names without relative words."""
    return [each.start for each in readings(text, None) if each.days == 1]


def readings(text: str, anchor: date | None) -> Readings:
    """Every time that a text names, as intervals."""
    return [each for phrase in phrases(text, anchor) for each in phrase.readings]


def _resolved(
    rule: Rule, match: re.Match[str], anchor: date | None, lead: Lead | None
) -> tuple[Interval, ...]:
    readings = rule.resolve(match, anchor)
    if lead is None:
        return tuple(readings)
    return tuple(each for reading in readings if (each := beside(lead, reading)))
