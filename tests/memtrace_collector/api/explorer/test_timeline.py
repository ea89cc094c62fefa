"""Events counted in columns."""

from __future__ import annotations

from memtrace_collector.api.explorer.timeline import timeline


def test_every_event_is_in_one_column_and_the_last_in_the_last() -> None:
    found = timeline({"written": [0, 50, 100], "delivered": list(range(101))}, columns=4)
    assert found is not None
    assert found["lanes"]["written"] == [(0, 1), (2, 1), (3, 1)]
    assert sum(count for _, count in found["lanes"]["delivered"]) == 101
    assert (found["first_ns"], found["last_ns"], found["columns"]) == (0, 100, 4)


def test_one_moment_is_one_column_and_nothing_is_no_line() -> None:
    found = timeline({"written": [7, 7]})
    assert found is not None and found["lanes"] == {"written": [(0, 2)]}
    assert timeline({"written": []}) is None
