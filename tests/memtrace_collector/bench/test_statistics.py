"""Intervals against published and computed values."""

from __future__ import annotations

import pytest

from memtrace_collector.bench.statistics import clustered_share, percentile, share, wilson


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),  # Newcombe (1998), table I, method 3
        (15, 148, 0.0624, 0.1605),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_interval(
    hits: int, total: int, low: float, high: float
) -> None:
    assert wilson(hits, total) == pytest.approx((low, high), abs=6e-5)


def test_a_share_of_nothing_has_no_value_and_says_nothing() -> None:
    nothing = share([])
    assert nothing.value is None and (nothing.low, nothing.high) == (0.0, 1.0)
    assert nothing.to_json()["share"] is None


def test_clusters_that_agree_inside_widen_the_interval() -> None:
    """Ten dialogues of ten cases, each all right or all wrong, say no more than ten cases."""
    marks = [(f"d{dialogue}", dialogue < 7) for dialogue in range(10) for _ in range(10)]
    alone = share(right for _, right in marks)
    found = clustered_share(marks)
    assert found.value == alone.value == 0.7
    assert found.high - found.low > 2 * (alone.high - alone.low)


def test_the_bootstrap_interval_is_that_of_the_drawn_clusters() -> None:
    """Two clusters, 0/1 and 1/1: a drawn share is 0, 1/2 or 1, each end with a quarter."""
    found = clustered_share([("a", False), ("b", True)])
    assert (found.low, found.high) == (0.0, 1.0)


def test_the_bootstrap_is_repeatable() -> None:
    marks = [(f"d{number % 6}", number % 3 > 0) for number in range(60)]
    assert clustered_share(marks, seed=4) == clustered_share(marks, seed=4)


@pytest.mark.parametrize("marks", [[("a", True), ("a", False)], [("a", True), ("b", True)]])
def test_without_spread_between_clusters_wilson_stands_in(marks: list[tuple[str, bool]]) -> None:
    found = clustered_share(marks)
    assert (found.low, found.high) == wilson(found.hits, found.total)


def test_percentile_is_the_nearest_rank() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.95) == 95
    assert percentile(values, 1.0) == 100
    assert percentile([], 0.5) == 0
