"""Lengths of time are equal across units; what names none is none."""

from __future__ import annotations

import pytest

from memtrace_collector.attribution.texts.quantities import durations


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("two weeks", "14 days"),
        ("1.5 hours", "90 minutes"),
        ("half an hour", "30 min"),
        ("an hour and a half", "90 minutes"),
        ("a 25-minute session", "25 minutes"),
    ],
)
def test_same_length_in_other_units(one: str, other: str) -> None:
    assert durations(one) == durations(other) != frozenset()


@pytest.mark.parametrize("value", ["", "weeks", "every minute counts", "12 monkeys", "3 daybeds"])
def test_what_names_no_length_has_none(value: str) -> None:
    assert durations(value) == frozenset()


def test_other_lengths_differ() -> None:
    assert durations("two weeks").isdisjoint(durations("12 days"))
