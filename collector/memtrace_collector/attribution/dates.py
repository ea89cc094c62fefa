"""Times named in a text, as intervals of whole days: pure.

A phrase is resolved against the moment from which relative words in its text count. Where a
phrase leaves the year or the direction open ("in March", "on Friday"), both readings are
returned: compatibility asks whether one of them fits.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from itertools import islice
from typing import NamedTuple

from memtrace_collector.attribution.text import normalise

_MONTHS = (
    {name.lower(): n for n, name in enumerate(calendar.month_name) if name}
    | {name.lower(): n for n, name in enumerate(calendar.month_abbr) if name}
    | {"sept": 9}
)
_WEEKDAYS = {name.lower(): n for n, name in enumerate(calendar.day_name)} | {"tues": 1, "thurs": 3}
_SMALL = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
} | {"a": 1, "an": 1}
_M = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_W = "(?P<weekday>" + "|".join(sorted(_WEEKDAYS, key=len, reverse=True)) + ")"
_N = (
    r"(?P<n>\d{1,3}|"
    + "|".join(sorted(_SMALL, key=len, reverse=True))
    + r"|a couple of|a few|several)"
)
_UNIT = r"(?P<unit>day|week|month|year)s?"

WIDEST_RATIO = 2.5
NARROW_DAYS = 3
MAX_PHRASES = 500


class Interval(NamedTuple):
    """Whole days, both ends included."""

    start: date
    end: date

    @property
    def days(self) -> int:
        return (self.end - self.start).days + 1

    def distance(self, other: Interval) -> int:
        """Days between the two; 0 when they overlap."""
        return max(0, (other.start - self.end).days, (self.start - other.end).days)


class Phrase(NamedTuple):
    """A time expression: one or more readings, and whether it depends on the anchor."""

    text: str
    readings: tuple[Interval, ...]
    relative: bool
    start: int


def _day(value: date) -> Interval:
    return Interval(value, value)


def _span(start: date, days: int) -> Interval:
    return Interval(start, start + timedelta(days=days - 1))


def _make(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _month(year: int, month: int) -> Interval:
    return Interval(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))


def _around(center: date, days: int) -> Interval:
    return Interval(center - timedelta(days=days), center + timedelta(days=days))


def _shift_months(value: date, months: int) -> date:
    total = value.year * 12 + value.month - 1 + months
    year, month = divmod(total, 12)
    return date(year, month + 1, min(value.day, calendar.monthrange(year, month + 1)[1]))


def _week(anchor: date, weeks: int) -> Interval:
    return _span(anchor - timedelta(days=anchor.weekday()) + timedelta(weeks=weeks), 7)


_Readings = list[Interval]
_Resolver = Callable[[re.Match[str], "date | None"], _Readings]


def _ymd(match: re.Match[str], _: date | None) -> _Readings:
    made = _make(int(match["y"]), int(match["m"]), int(match["d"]))
    return [_day(made)] if made else []


def _slashed(match: re.Match[str], _: date | None) -> _Readings:
    first, second, year = int(match["a"]), int(match["b"]), int(match["y"])
    year += 2000 if year < 100 else 0
    made = {_make(year, first, second), _make(year, second, first)} - {None}
    return [_day(value) for value in sorted(filter(None, made))]


def _day_month(match: re.Match[str], anchor: date | None) -> _Readings:
    month, day = _MONTHS[match["month"].lower()], int(match["d"])
    if match["y"]:
        made = _make(int(match["y"]), month, day)
        return [_day(made)] if made else []
    years = [] if anchor is None else [anchor.year - 1, anchor.year, anchor.year + 1]
    days = [made for year in years if (made := _make(year, month, day))]
    return [_day(made) for made in days if anchor and abs((made - anchor).days) <= 366]


def _month_year(match: re.Match[str], _: date | None) -> _Readings:
    return [_month(int(match["y"]), _MONTHS[match["month"].lower()])]


def _month_only(match: re.Match[str], anchor: date | None) -> _Readings:
    if anchor is None:
        return []
    month = _MONTHS[match["month"].lower()]
    return [
        reading
        for year in (anchor.year - 1, anchor.year, anchor.year + 1)
        if (reading := _month(year, month)).distance(_day(anchor)) <= 366
    ]


def _year(match: re.Match[str], _: date | None) -> _Readings:
    year = int(match["y"])
    return [Interval(date(year, 1, 1), date(year, 12, 31))]


_DAY_NAMES = """
    today:0 tonight:0 this_morning:0 this_afternoon:0 this_evening:0 just_now:0 yesterday:-1
    last_night:-1 the_day_before_yesterday:-2 day_before_yesterday:-2 tomorrow:1
    the_day_after_tomorrow:2 day_after_tomorrow:2 今天:0 昨天:-1 前天:-2 明天:1 后天:2
    今日:0 昨日:-1 明日:1 어제:-1 오늘:0 내일:1
"""
_NAMED_DAYS = {
    name.replace("_", " "): int(days)
    for name, _, days in (pair.partition(":") for pair in _DAY_NAMES.split())
}
_CJK_WEEKS = {
    "上周": -1,
    "上星期": -1,
    "先週": -1,
    "这周": 0,
    "本周": 0,
    "今週": 0,
    "下周": 1,
    "来週": 1,
    "지난주": -1,
}
_CJK_MONTHS = {"上个月": -1, "上月": -1, "先月": -1, "这个月": 0, "今月": 0, "下个月": 1, "来月": 1}


def _named_day(match: re.Match[str], anchor: date | None) -> _Readings:
    if anchor is None:
        return []
    return [_day(anchor + timedelta(days=_NAMED_DAYS[re.sub(r"\s+", " ", match[0].lower())]))]


def _cjk_period(match: re.Match[str], anchor: date | None) -> _Readings:
    if anchor is None:
        return []
    if match[0] in _CJK_WEEKS:
        return [_week(anchor, _CJK_WEEKS[match[0]])]
    moved = _shift_months(anchor, _CJK_MONTHS[match[0]])
    return [_month(moved.year, moved.month)]


def _cjk_date(match: re.Match[str], anchor: date | None) -> _Readings:
    years = [int(match["y"])] if match["y"] else ([anchor.year - 1, anchor.year] if anchor else [])
    if match["d"] is None:
        return [_month(year, int(match["m"])) for year in years if 1 <= int(match["m"]) <= 12]
    return [_day(m) for year in years if (m := _make(year, int(match["m"]), int(match["d"])))]


def _counted(match: re.Match[str], anchor: date | None) -> _Readings:
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
        return [_around(anchor + timedelta(days=sign * count), 2 if vague else 0)]
    if unit == "week":
        center = anchor + timedelta(weeks=sign * count)
        return [_around(center, 10)] if vague else [_around(center, 1), _around(center, 3)]
    if unit == "month":
        moved = _shift_months(anchor, sign * count)
        exact = [] if vague else [_around(moved, 1)]
        return [*exact, _around(moved, 45 if vague else 15), _month(moved.year, moved.month)]
    year = anchor.year + sign * count
    if not date.min.year < year < date.max.year:
        return []
    return [Interval(date(year, 1, 1), date(year, 12, 31))]


def _period(match: re.Match[str], anchor: date | None) -> _Readings:
    if anchor is None:
        return []
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}[
        match["which"].lower()
    ]
    unit = match["unit2"].lower()
    if unit == "week":
        rolling = {
            -1: [_span(anchor - timedelta(days=7), 7)],
            0: [],
            1: [_span(anchor + timedelta(days=1), 7)],
        }
        return [_week(anchor, step), *rolling[step]]
    if unit == "weekend":
        saturday = anchor - timedelta(days=anchor.weekday()) + timedelta(days=5)
        return [_span(saturday + timedelta(weeks=step), 2)]
    if unit == "month":
        moved = _shift_months(anchor, step)
        return [_month(moved.year, moved.month)]
    return [Interval(date(anchor.year + step, 1, 1), date(anchor.year + step, 12, 31))]


def _weekday(match: re.Match[str], anchor: date | None) -> _Readings:
    if anchor is None:
        return []
    ahead = (_WEEKDAYS[match["weekday"].lower()] - anchor.weekday()) % 7
    following = anchor + timedelta(days=ahead or 7)
    preceding = anchor - timedelta(days=7 - ahead if ahead else 7)
    which = (match["which"] or "").lower()
    if which in ("last", "past", "previous"):
        return [_day(preceding)] + ([_day(preceding - timedelta(days=7))] if 7 - ahead < 4 else [])
    if which in ("next", "coming"):
        return (
            [_day(following), _day(following + timedelta(days=7))]
            if ahead < 5
            else [_day(following)]
        )
    if which == "this":
        return [_day(anchor + timedelta(days=ahead))]
    return [_day(preceding), _day(anchor + timedelta(days=ahead)), _day(following)]


_MONTH_ALONE = re.compile(
    r"\b(?:[Ii]n|[Ss]ince|[Dd]uring|until|by|from|[Ll]ast|[Nn]ext|this|early|mid|late|of)[ -]"
    "(?P<month>" + "|".join(name for name in calendar.month_name if name) + r")(?=\W|$)"
)
"""Without a day or year only a capital and a preposition tell "May" from "may"."""
_YEAR = r"(?P<y>(?:19|20)\d\d)"
_DAY = r"(?P<d>\d\d?)(?:st|nd|rd|th)?"
_WHICH = "(?P<which>last|past|previous|this|next|coming)"
_CJK_PERIODS = "|".join(sorted((*_CJK_WEEKS, *_CJK_MONTHS), key=len, reverse=True))
_ANY_NAMED_DAY = "|".join(
    (rf"\b{name}\b" if name.isascii() else name).replace(" ", r"\s+")
    for name in sorted(_NAMED_DAYS, key=len, reverse=True)
)
_PATTERNS: tuple[tuple[str, _Resolver, bool], ...] = (
    (rf"\b{_YEAR}[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)(?=\D|T|$)", _ymd, False),
    (rf"(?:{_YEAR}\s*年\s*)?(?P<m>\d\d?)\s*月(?:\s*(?P<d>\d\d?)\s*[日号])?", _cjk_date, False),
    (r"\b(?P<a>\d\d?)[/.](?P<b>\d\d?)[/.](?P<y>(?:19|20)?\d\d)\b", _slashed, False),
    (rf"\b{_DAY}(?:\s+of)?\s+{_M}(?:,?\s+{_YEAR})?\b", _day_month, False),
    (rf"\b{_M}\s+{_DAY}(?!\d)(?:,?\s+{_YEAR})?\b", _day_month, False),
    (rf"\b{_M},?\s+(?:of\s+)?{_YEAR}\b", _month_year, False),
    (_CJK_PERIODS, _cjk_period, True),
    (_ANY_NAMED_DAY, _named_day, True),
    (rf"\b{_N}\s+{_UNIT}\s+(?P<past>ago|back|earlier)\b", _counted, True),
    (rf"\bin\s+{_N}\s+{_UNIT}(?P<past>)(?='s time|\b)(?!\s+ago)", _counted, True),
    (rf"\b{_WHICH}\s+(?P<unit2>weekend|week|month|year)\b", _period, True),
    (rf"\b(?:{_WHICH}\s+)?{_W}\b", _weekday, True),
    (rf"(?<![\w.,$€£-]){_YEAR}(?![\w%]|[.,]\d)", _year, False),
)
_RULES: tuple[tuple[re.Pattern[str], _Resolver, bool], ...] = (
    *((re.compile(pattern, re.IGNORECASE), made, rel) for pattern, made, rel in _PATTERNS),
    (_MONTH_ALONE, _month_only, False),
)
"""The more specific first: what one has taken is not looked at by the next."""


_LEAD = re.compile(r"\b(day|week|weekend|month) (before|after) (?:the )?$", re.IGNORECASE)
_LEAD_CHARACTERS = 24


def _relation(text: str, phrase: Phrase) -> Phrase:
    """``the week before 9 June 2023``: the named period beside the date."""
    lead = _LEAD.search(text[max(0, phrase.start - _LEAD_CHARACTERS) : phrase.start])
    if lead is None:
        return phrase
    days = {"day": 1, "week": 7, "weekend": 7, "month": 31}[lead[1].lower()]
    before = lead[2].lower() == "before"
    readings = tuple(
        Interval(r.start - timedelta(days=days), r.start - timedelta(days=1))
        if before
        else Interval(r.end + timedelta(days=1), r.end + timedelta(days=days))
        for r in phrase.readings
    )
    return phrase._replace(readings=readings)


def phrases(text: str, anchor: date | None) -> list[Phrase]:
    """The first :data:`MAX_PHRASES` time expressions of each form, in order of the text.

    Relative ones need an anchor to be resolved; without one they have no readings.
    """
    text = normalise(text)
    taken = bytearray(len(text))
    found: list[Phrase] = []
    for pattern, resolve, relative in _RULES:
        for match in islice(pattern.finditer(text), MAX_PHRASES):
            start, end = match.span()
            if start == end or any(taken[start:end]):
                continue
            try:
                phrase = Phrase(match[0], tuple(resolve(match, anchor)), relative, start)
                phrase = _relation(text, phrase)
            except (OverflowError, ValueError):
                continue
            if phrase.readings or anchor is None:
                taken[start:end] = b"\x01" * (end - start)
                found.append(phrase)
    return sorted(found, key=lambda phrase: phrase.start)


def encloses(wider: Interval, narrow: Interval) -> bool:
    """Whether one interval has the other inside and is longer."""
    return wider.start <= narrow.start and narrow.end <= wider.end and wider.days > narrow.days


def compatible(expected: Interval, found: Interval) -> bool:
    """Whether ``found`` names the expected time: it overlaps and is not much vaguer."""
    widest = max(NARROW_DAYS, round(WIDEST_RATIO * expected.days))
    return expected.distance(found) == 0 and found.days <= widest


def matches(expected: Iterable[Interval], found: Iterable[Interval]) -> bool:
    """Whether one reading of the one is compatible with one of the other."""
    candidates = list(found)
    return any(compatible(want, have) for want in expected for have in candidates)


def nearest(expected: Iterable[Interval], found: Iterable[Interval]) -> int | None:
    """Days between the closest readings; ``None`` when there are none."""
    candidates = list(found)
    return min((want.distance(have) for want in expected for have in candidates), default=None)
