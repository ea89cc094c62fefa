"""Times named in Chinese, Japanese, Korean and Spanish: the common forms. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta

from memtrace_collector.attribution.texts.intervals import (
    Interval,
    Readings,
    Rule,
    around,
    day,
    make_date,
    month,
    shift_months,
    week,
)

_DAY_NAMES = """
    今天:0 昨天:-1 前天:-2 明天:1 后天:2 今日:0 昨日:-1 おととい:-2 一昨日:-2 明日:1 明後日:2
    어제:-1 오늘:0 내일:1 hoy:0 ayer:-1 anteayer:-2 anoche:-1
"""
_DAYS = {name: int(days) for name, _, days in (pair.partition(":") for pair in _DAY_NAMES.split())}
_WEEKS = {
    "上周": -1, "上星期": -1, "先週": -1, "这周": 0, "本周": 0, "今週": 0, "下周": 1, "下星期": 1,
    "来週": 1, "지난주": -1, "이번 주": 0, "다음 주": 1,
}  # fmt: skip
_MONTHS = {"上个月": -1, "上月": -1, "先月": -1, "这个月": 0, "今月": 0, "下个月": 1, "来月": 1}
_YEARS = {"去年": -1, "前年": -2, "今年": 0, "明年": 1, "来年": 1, "작년": -1, "올해": 0, "내년": 1}
_COUNTS = {c: n for n, c in enumerate("零一二三四五六七八九十")} | {
    "两": 2,
    "兩": 2,
    "几": 3,
    "数": 3,
}
_UNITS = {
    "天": "day", "日": "day", "周": "week", "星期": "week", "週間": "week", "个星期": "week",
    "个月": "month", "ヶ月": "month", "か月": "month", "カ月": "month", "年": "year",
}  # fmt: skip
_CJK_WEEKDAYS = {c: n for n, c in enumerate("一二三四五六日")} | {"天": 6}
_JAPANESE_WEEKDAYS = {c: n for n, c in enumerate("月火水木金土日")}
_MONTH_NAMES = """
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
"""
_WEEKDAY_NAMES = "lunes martes miércoles jueves viernes sábado domingo"
_COUNT_NAMES = "cero un dos tres cuatro cinco seis siete ocho nueve diez once doce"
_SPANISH_MONTHS = {name: n for n, name in enumerate(_MONTH_NAMES.split(), 1)}
_SPANISH_WEEKDAYS = {name: n for n, name in enumerate(_WEEKDAY_NAMES.split())}
_SPANISH_COUNTS = {word: n for n, word in enumerate(_COUNT_NAMES.split())} | {
    "una": 1,
    "unos": 3,
    "unas": 3,
}
_SPANISH_UNITS = {"día": "day", "semana": "week", "mes": "month", "año": "year"}
_YEAR = r"(?P<y>(?:19|20)\d\d)"


def _named_day(match: re.Match[str], anchor: date | None) -> Readings:
    return [day(anchor + timedelta(days=_DAYS[match[0].lower()]))] if anchor else []


def _period(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    name = match["period"]
    if name in _YEARS:
        return [_year(anchor.year + _YEARS[name])]
    if name in _MONTHS:
        moved = shift_months(anchor, _MONTHS[name])
        return [month(moved.year, moved.month)]
    whole = week(anchor, _WEEKS[name])
    weekday = _weekday_in(match["weekday"] or "")
    return [whole] if weekday is None else [day(whole.start + timedelta(days=weekday))]


def _weekday_in(name: str) -> int | None:
    """The number of a weekday as ``二`` or ``の火曜日``."""
    if name.startswith("の"):
        return _JAPANESE_WEEKDAYS.get(name[1:2])
    return _CJK_WEEKDAYS.get(name[:1])


def _cjk_weekday(match: re.Match[str], anchor: date | None) -> Readings:
    number = _JAPANESE_WEEKDAYS[match["youbi"]] if match["youbi"] else _CJK_WEEKDAYS[match["zhou"]]
    return _around_weekday(number, anchor)


def _around_weekday(number: int, anchor: date | None) -> Readings:
    """The one before and the one from today on."""
    if anchor is None:
        return []
    ahead = (number - anchor.weekday()) % 7
    return [day(anchor + timedelta(days=ahead - 7)), day(anchor + timedelta(days=ahead))]


def _cjk_date(match: re.Match[str], anchor: date | None) -> Readings:
    years = [int(match["y"])] if match["y"] else ([anchor.year - 1, anchor.year] if anchor else [])
    number = int(match["m"])
    if match["d"] is None:
        return [month(year, number) for year in years if 1 <= number <= 12]
    return [day(m) for year in years if (m := make_date(year, number, int(match["d"])))]


def _cjk_counted(match: re.Match[str], anchor: date | None) -> Readings:
    said = match["n"]
    count = int(said) if said.isdigit() else _COUNTS[said]
    return _counted(count, _UNITS[match["unit"]], anchor, vague=said in "几数")


def _spanish_counted(match: re.Match[str], anchor: date | None) -> Readings:
    said = match["n"].lower()
    count = int(said) if said.isdigit() else _SPANISH_COUNTS[said]
    unit = match["unit"].lower()
    unit = _SPANISH_UNITS.get(unit) or _SPANISH_UNITS[unit.removesuffix("es").removesuffix("s")]
    return _counted(count, unit, anchor, vague=said in ("unos", "unas"))


def _counted(count: int, unit: str, anchor: date | None, *, vague: bool) -> Readings:
    if anchor is None:
        return []
    if unit in ("day", "week"):
        days = count * (7 if unit == "week" else 1)
        slack = (2 if vague else 0) + (3 if unit == "week" else 0)
        return [around(anchor - timedelta(days=days), slack)]
    if unit == "month":
        moved = shift_months(anchor, -count)
        return [around(moved, 15), month(moved.year, moved.month)]
    return [_year(anchor.year - count)]


def _year(number: int) -> Interval:
    return Interval(date(number, 1, 1), date(number, 12, 31))


def _spanish_period(match: re.Match[str], anchor: date | None) -> Readings:
    if anchor is None:
        return []
    side = (match["before"] or match["after"]).lower()
    step = -1 if side.startswith("pasad") else 0 if side.startswith("est") else 1
    unit = match["unit"].lower()
    if unit in _SPANISH_WEEKDAYS:
        found = _around_weekday(_SPANISH_WEEKDAYS[unit], anchor)
        return found[:1] if step < 0 else found[1:]
    if unit == "semana":
        return [week(anchor, step)]
    moved = shift_months(anchor, step)
    return [month(moved.year, moved.month)] if unit == "mes" else [_year(anchor.year + step)]


def _spanish_date(match: re.Match[str], anchor: date | None) -> Readings:
    number = _SPANISH_MONTHS[match["month"].lower()]
    years = [int(match["y"])] if match["y"] else ([anchor.year - 1, anchor.year] if anchor else [])
    if match["d"] is None:
        return [month(year, number) for year in years]
    return [day(m) for year in years if (m := make_date(year, number, int(match["d"])))]


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_SPANISH_MONTH = rf"(?P<month>{_any(_SPANISH_MONTHS)})"
_PATTERNS = (
    (rf"(?:{_YEAR}\s*年\s*)?(?P<m>\d\d?)\s*月(?:\s*(?P<d>\d\d?)\s*[日号])?", _cjk_date, False),
    (rf"(?P<n>\d{{1,3}}|[{''.join(_COUNTS)}])(?P<unit>{_any(_UNITS)})前", _cjk_counted, True),
    (
        rf"(?P<period>{_any((*_WEEKS, *_MONTHS, *_YEARS))})"
        r"(?P<weekday>の[月火水木金土日]曜日?|[一二三四五六日天])?",
        _period,
        True,
    ),
    (
        r"(?P<youbi>[月火水木金土日])曜日?|(?:周|星期|礼拜)(?P<zhou>[一二三四五六日天])",
        _cjk_weekday,
        True,
    ),
    (
        r"|".join(
            rf"\b{name}\b" if name.isascii() else name
            for name in sorted(_DAYS, key=len, reverse=True)
        ),
        _named_day,
        True,
    ),
    (
        rf"\bhace\s+(?P<n>\d{{1,3}}|{_any(_SPANISH_COUNTS)})\s+(?P<unit>(?:día|semana|año)s?|mes(?:es)?)\b",
        _spanish_counted,
        True,
    ),
    (
        rf"\b(?:(?P<before>est[ea]|próxim[oa])\s+)(?P<unit>semana|mes|año|{_any(_SPANISH_WEEKDAYS)})(?P<after>)\b",
        _spanish_period,
        True,
    ),
    (
        rf"(?P<before>)\b(?P<unit>semana|mes|año|{_any(_SPANISH_WEEKDAYS)})\s+(?P<after>pasad[oa]|próxim[oa]|que\s+viene)\b",
        _spanish_period,
        True,
    ),
    (
        rf"\b(?P<d>\d\d?)\s+de\s+{_SPANISH_MONTH}(?:\s+(?:de|del)\s+{_YEAR})?\b",
        _spanish_date,
        False,
    ),
    (rf"\b(?P<d>\Z)?en\s+{_SPANISH_MONTH}(?:\s+(?:de|del)\s+{_YEAR})?\b", _spanish_date, False),
)
RULES: tuple[Rule, ...] = tuple(
    Rule(re.compile(pattern, re.IGNORECASE), resolve, relative)
    for pattern, resolve, relative in _PATTERNS
)
"""The more specific first."""
