"""Which messages probably say what was needed, when nobody named the evidence. Pure.

A message is trusted when it has a fair share of the expected words, or names the expected time
and speaks of the question; one that is merely similar to the question is no evidence.
"""

from __future__ import annotations

from memtrace_collector.attribution.carrying.bearing import Bearing
from memtrace_collector.attribution.carrying.needs import Item
from memtrace_collector.attribution.carrying.once import once
from memtrace_collector.attribution.carrying.said import said_before
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.texts import dates, text

TRUSTED = 0.4
"""Share of the expected words, weighted by rarity, that a message must have."""
ON_TOPIC = 0.2
"""How well a message that names the expected time must fit the question."""
ADDS = 0.3
"""Share of the expected words that another message must add."""
_EXPECTED_WEIGHT = 2.0
"""The expected words tell their message better than the question's do."""
_TIME_NAMED, _TIME_SAID = 0.5, 0.2
_MOST = 3


def likely_evidence(view: View, item: Item) -> tuple[str, ...]:
    """The best message, and up to two more that have what it lacks; none when none is trusted."""
    said = [ref for ref in said_before(view) if view.text(ref)]
    if item.temporal:
        return _naming_the_time(view, item, said)
    question, expected = _on_question(view), Bearing(view, item.tokens)
    ranked = sorted(
        said,
        key=lambda ref: -(_EXPECTED_WEIGHT * expected.of_ref(ref) + question.of_ref(ref)),
    )
    found: list[str] = []
    covered: frozenset[str] = frozenset()
    for ref in ranked:
        own = text.content_tokens(view.text(ref) or "") & item.tokens
        least = ADDS if found else TRUSTED
        if len(found) < _MOST and expected.share(own - covered) >= least:
            found.append(ref)
            covered |= own
    return tuple(found)


def _naming_the_time(view: View, item: Item, said: list[str]) -> tuple[str, ...]:
    question = _on_question(view)
    rated = [
        (question.of_ref(ref), _names(view, item, ref), -place, ref)
        for place, ref in enumerate(said)
    ]
    fitting = [(fit + time, place, ref) for fit, time, place, ref in rated if fit >= ON_TOPIC]
    timely = [each for each in fitting if each[0] >= _TIME_NAMED + ON_TOPIC]
    return (max(timely)[2],) if timely else ()


def _names(view: View, item: Item, ref: str) -> float:
    """Whether a message names the expected time, or was said then."""
    moment = view.moment(ref)
    day = moment.day if moment else None
    readings = [
        reading
        for phrase in dates.phrases(view.text(ref) or "", day)
        for reading in phrase.readings
    ]
    if dates.matches(item.intervals, readings):
        return _TIME_NAMED
    said_then = day is not None and dates.matches(item.intervals, [dates.Interval(day, day)])
    return _TIME_SAID if said_then else 0.0


@once
def _on_question(view: View) -> Bearing:
    return Bearing(view, text.content_tokens(view.question or ""))
