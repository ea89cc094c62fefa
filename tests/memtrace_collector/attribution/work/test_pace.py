from __future__ import annotations

from memtrace_collector.attribution.work.pace import Pace

SECOND = 1_000_000_000


def spent(pace: Pace, now_ns: int) -> int:
    count = 0
    while pace.spend(now_ns):
        count += 1
    return count


def test_a_minutes_worth_may_go_at_once_and_then_no_more_than_the_pace() -> None:
    pace = Pace(60, 0)
    assert spent(pace, 0) == 60
    assert spent(pace, SECOND // 2) == 0
    assert spent(pace, 10 * SECOND) == 10
    assert spent(pace, 3600 * SECOND) == 60, "an idle hour is not saved up"


def test_what_was_not_needed_is_given_back_and_clocks_may_go_backwards() -> None:
    pace = Pace(1, 5 * SECOND)
    assert pace.spend(5 * SECOND) and not pace.spend(5 * SECOND)
    pace.give_back()
    assert pace.spend(4 * SECOND) and not pace.spend(4 * SECOND)
