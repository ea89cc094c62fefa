"""Each destination gets late spans as it takes them."""

from __future__ import annotations

import pytest

from memtrace_collector.settings.profiles import PROFILES

MINUTE = 60_000_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
ENDED = 1_000 * DAY
THERE, NOW, NEVER = "at its target", "now", "not written"

LATE = {
    "jaeger": (THERE, THERE, THERE),
    "jaeger-badger": (THERE, THERE, THERE),
    "jaeger-elasticsearch": (THERE, THERE, NOW),
    "tempo": (NOW, NOW, NOW),
    "openobserve": (THERE, NOW, NOW),
    "signoz": (THERE, THERE, NOW),
    "logfire": (THERE, NOW, NOW),
    "phoenix": (THERE, THERE, THERE),
    "langfuse": (NOW, NOW, NOW),
    "clickhouse": (NOW, NOW, NOW),
    "collector": (NOW, NOW, NOW),
    "none": (NEVER, NEVER, NEVER),
}
"""After two hours, two days and a month."""


def _stamped(profile: str, age_ns: int) -> str:
    stamp = PROFILES[profile].stamp(ENDED, ENDED + age_ns)
    return {None: NEVER, ENDED: THERE, ENDED + age_ns: NOW}[stamp]


@pytest.mark.parametrize("profile", PROFILES)
def test_what_ended_within_the_hour_is_no_late_span(profile: str) -> None:
    assert _stamped(profile, 59 * MINUTE) == THERE


@pytest.mark.fault("F37")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_late_span_is_stamped_where_the_destination_takes_it(profile: str) -> None:
    stamped = tuple(_stamped(profile, age) for age in (2 * HOUR, 2 * DAY, 30 * DAY))
    assert stamped == LATE[profile]


def test_a_limit_leaves_time_for_the_delivery() -> None:
    assert _stamped("openobserve", 3 * HOUR + 59 * MINUTE) == THERE
    assert _stamped("openobserve", 4 * HOUR + MINUTE) == NOW


def test_the_trace_of_the_cause_is_marked_in_jaeger_only_and_while_it_is_found() -> None:
    assert {name for name, each in PROFILES.items() if each.marker} == {
        "jaeger",
        "jaeger-badger",
        "jaeger-elasticsearch",
    }
    assert PROFILES["jaeger"].takes(365 * DAY)
    assert not PROFILES["jaeger-elasticsearch"].takes(4 * DAY)
