"""Intervals of whole days, and when one names the same time as another. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import NamedTuple

WIDEST_RATIO = 2.5
NARROW_DAYS = 3


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


Readings = list[Interval]
Resolver = Callable[[re.Match[str], "date | None"], Readings]


class Rule(NamedTuple):
    """A form of naming a time, and how it is read from the day it is said on."""

    pattern: re.Pattern[str]
    resolve: Resolver
    relative: bool


def day(value: date) -> Interval:
    """One day."""
    return Interval(value, value)


def span(start: date, days: int) -> Interval:
    """So many days from a first one."""
    return Interval(start, start + timedelta(days=days - 1))


def make_date(year: int, month_number: int, day_number: int) -> date | None:
    """The date, or None when there is no such day."""
    try:
        return date(year, month_number, day_number)
    except ValueError:
        return None


def month(year: int, number: int) -> Interval:
    """A calendar month."""
    return Interval(date(year, number, 1), date(year, number, calendar.monthrange(year, number)[1]))


def around(center: date, days: int) -> Interval:
    """So many days on either side of a day."""
    return Interval(center - timedelta(days=days), center + timedelta(days=days))


def shift_months(value: date, months: int) -> date:
    """The same day so many months on, or the month's last one."""
    total = value.year * 12 + value.month - 1 + months
    year, index = divmod(total, 12)
    return date(year, index + 1, min(value.day, calendar.monthrange(year, index + 1)[1]))


def week(anchor: date, weeks: int) -> Interval:
    """The Monday-to-Sunday week so many weeks from the day's own."""
    return span(anchor - timedelta(days=anchor.weekday()) + timedelta(weeks=weeks), 7)


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
