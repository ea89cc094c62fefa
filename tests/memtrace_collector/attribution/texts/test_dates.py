"""Time expressions resolve to intervals against the moment of their text."""

from __future__ import annotations

from datetime import date

import pytest

from memtrace_collector.attribution.texts import dates
from memtrace_collector.attribution.texts.dates import Interval

MONDAY = date(2026, 1, 5)


def readings(text: str, anchor: date | None = MONDAY) -> list[Interval]:
    return [reading for phrase in dates.phrases(text, anchor) for reading in phrase.readings]


def days(start: str, end: str | None = None) -> Interval:
    return Interval(date.fromisoformat(start), date.fromisoformat(end or start))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I did it yesterday", days("2026-01-04")),
        ("the day before yesterday", days("2026-01-03")),
        ("last night", days("2026-01-04")),
        ("tomorrow", days("2026-01-06")),
        ("15 January 2026", days("2026-01-15")),
        ("January 15th, 2026", days("2026-01-15")),
        ("the 15th of January 2026", days("2026-01-15")),
        ("2026-01-15T10:00:00Z", days("2026-01-15")),
        ("in March 2025", days("2025-03-01", "2025-03-31")),
        ("back in March", days("2025-03-01", "2025-03-31")),
        ("last week", days("2025-12-29", "2026-01-04")),
        ("last month", days("2025-12-01", "2025-12-31")),
        ("3 days ago", days("2026-01-02")),
        ("two weeks ago", days("2025-12-21", "2025-12-23")),
        ("next Friday", days("2026-01-09")),
        ("last Friday", days("2026-01-02")),
        ("on Tuesday", days("2026-01-06")),
        ("in 2 days", days("2026-01-07")),
        ("in 2019", days("2019-01-01", "2019-12-31")),
        ("the week before 9 June 2023", days("2023-06-02", "2023-06-08")),
        ("2026年1月4日", days("2026-01-04")),
        ("我昨天去了", days("2026-01-04")),
        ("this weekend", days("2026-01-10", "2026-01-11")),
        ("the weekend before last", days("2025-12-27", "2025-12-28")),
        ("last summer", days("2025-06-01", "2025-08-31")),
        ("in the winter of 2024", days("2024-12-01", "2025-02-28")),
        ("on the 3rd", days("2026-01-03")),
        ("The Sunday before 25 May 2023", days("2023-05-21")),
        ("two weekends before 13 October 2022", days("2022-10-01", "2022-10-02")),
        ("first week of August 2023", days("2023-08-01", "2023-08-07")),
        ("the last weekend of July 2023", days("2023-07-29", "2023-07-30")),
        ("late March 2023", days("2023-03-21", "2023-03-31")),
        ("the day after 3 May 2023", days("2023-05-04")),
        ("ayer fui al cine", days("2026-01-04")),
        ("la semana pasada", days("2025-12-29", "2026-01-04")),
        ("el 5 de marzo de 2024", days("2024-03-05")),
        ("en marzo de 2024", days("2024-03-01", "2024-03-31")),
        ("hace tres días", days("2026-01-02")),
        ("el martes pasado", days("2025-12-30")),
        ("el próximo viernes", days("2026-01-09")),
        ("三天前", days("2026-01-02")),
        ("上周二", days("2025-12-30")),
        ("先週の火曜日", days("2025-12-30")),
        ("両親は三日前に来た", days("2026-01-02")),
        ("去年", days("2025-01-01", "2025-12-31")),
    ],
)
def test_phrase_resolves_to_its_interval(text: str, expected: Interval) -> None:
    assert expected in readings(text)


@pytest.mark.parametrize(
    "text",
    [
        "May I come in?",
        "they march on",
        "it costs 2025 dollars.50",
        "0/0/2020",
        "99999 years ago",
        "the fall of the wall",
        "spring rolls for dinner",
        "the first half of the book",
        "",
    ],
)
def test_what_names_no_time_has_no_day(text: str) -> None:
    assert all(reading.days > 300 for reading in readings(text))


def test_relative_phrases_need_an_anchor() -> None:
    assert readings("yesterday", None) == []
    assert [phrase.text for phrase in dates.phrases("yesterday", None)] == ["yesterday"]
    assert readings("15 January 2026", None) == [days("2026-01-15")]


def test_both_readings_of_a_slashed_date_are_kept() -> None:
    assert set(readings("04/01/2026")) == {days("2026-01-04"), days("2026-04-01")}


def test_compatible_overlaps_and_is_not_much_vaguer() -> None:
    day = days("2026-01-04")
    assert dates.compatible(day, days("2026-01-03", "2026-01-05"))
    assert not dates.compatible(day, days("2026-01-05"))
    assert not dates.compatible(day, days("2026-01-01", "2026-01-31"))
    assert dates.compatible(days("2026-01-01", "2026-01-31"), day)


def test_extreme_anchors_do_not_fail() -> None:
    text = (
        "yesterday, tomorrow, 12 years ago, last month, next week, on Friday, in May, 3 months ago"
    )
    for anchor in (date.min, date.max):
        readings(text, anchor)


def test_a_long_hostile_text_is_read_in_bounded_time() -> None:
    text = "2025 in 2 days yesterday 月 " * 4_000
    assert len(dates.phrases(text, MONDAY)) <= 20 * dates.MAX_PHRASES
