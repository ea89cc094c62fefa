"""Ranks of a read with one more value in it: recorded scores and limits decide."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memtrace_collector.attribution.replay import retrieval
from memtrace_collector.graph.facts import Dropped, Operation

NEW = "mem:s:new@1"


def read(
    scores: Sequence[float | None],
    *,
    dropped: Sequence[float] = (),
    k: int | None = None,
    kind: str = "similarity",
    **limits: float,
) -> Operation:
    """A read that delivered as many values as it has scores and dropped others by its limit."""
    given_limits = {**limits, **({} if k is None else {"k": k})}
    return Operation(
        graph_id="g",
        trace_id="1" * 32,
        span_id="2" * 16,
        name="search_memory",
        step="retrieve",
        start_ns=1,
        end_ns=2,
        delivered=tuple(f"mem:s:{i}@1" for i in range(len(scores))),
        scores=tuple(scores),
        score_kind=kind,
        dropped=tuple(
            Dropped(f"mem:s:cut{i}@1", score, "limit", len(scores) + i + 1)
            for i, score in enumerate(dropped)
        ),
        limits=given_limits,
    )


SCORES = st.lists(st.floats(0, 1, allow_nan=False), max_size=8).map(
    lambda found: sorted(found, reverse=True)
)


@given(SCORES, st.integers(0, 8), st.floats(0, 1, allow_nan=False), st.integers(1, 12))
def test_never_more_than_the_limit_and_the_order_of_the_others_is_kept(
    scores: list[float], delivered: int, score: float, rank: int
) -> None:
    delivered = min(delivered, len(scores))
    op = read(scores[:delivered], dropped=scores[delivered:], k=delivered)
    everything = [c.ref for c in retrieval.candidates(op)]
    for placed in (
        retrieval.by_score(op, NEW, score),
        retrieval.at_rank(op, NEW, rank),
        retrieval.last_within(op, NEW),
    ):
        assert placed is not None
        assert len(placed.delivered) <= delivered
        others = [ref for ref in placed.delivered if ref != NEW]
        assert others == [ref for ref in everything if ref in others]
        assert placed.is_delivered == (NEW in placed.delivered)


@given(SCORES.filter(bool), st.data())
def test_a_value_taken_out_and_put_back_with_its_score_changes_nothing(
    scores: list[float], data: st.DataObject
) -> None:
    unique = sorted(set(scores), reverse=True)
    op = read(unique, k=len(unique))
    place = data.draw(st.integers(0, len(unique) - 1))
    placed = retrieval.by_score(op, op.delivered[place], unique[place])
    assert placed == retrieval.Placed(op.delivered, place + 1, True)


@given(SCORES, st.integers(0, 5))
def test_in_place_of_another_the_others_stay(scores: list[float], place: int) -> None:
    op = read(scores, k=len(scores))
    old = f"mem:s:{place}@1"
    placed = retrieval.in_place_of(op, NEW, old)
    if old not in op.delivered:
        assert placed is None
        return
    assert placed is not None
    assert placed.delivered == tuple(NEW if ref == old else ref for ref in op.delivered)


def test_a_better_score_pushes_the_last_one_out() -> None:
    placed = retrieval.by_score(read([0.9, 0.5], k=2), NEW, 0.7)
    assert placed == retrieval.Placed(("mem:s:0@1", NEW), 2, True)


def test_a_worse_score_is_cut_at_its_rank() -> None:
    placed = retrieval.by_score(read([0.9, 0.5], dropped=[0.4], k=2), NEW, 0.3)
    assert placed == retrieval.Placed(("mem:s:0@1", "mem:s:1@1"), 4, False)


def test_a_place_that_becomes_free_goes_to_the_first_that_was_cut() -> None:
    op = read([0.9, 0.5], dropped=[0.4], k=2)
    placed = retrieval.by_score(op, NEW, 0.1, instead_of="mem:s:0@1")
    assert placed == retrieval.Placed(("mem:s:1@1", "mem:s:cut0@1"), 3, False)


def test_a_smaller_distance_is_better() -> None:
    op = read([0.1, 0.5], k=2, kind="distance")
    assert retrieval.by_score(op, NEW, 0.3) == retrieval.Placed(("mem:s:0@1", NEW), 2, True)


def test_a_threshold_cuts_whatever_the_rank() -> None:
    op = read([0.9], k=5, threshold=0.5)
    assert retrieval.by_score(op, NEW, 0.4) == retrieval.Placed(("mem:s:0@1",), 2, False)
    assert retrieval.by_score(op, NEW, 0.6) == retrieval.Placed(("mem:s:0@1", NEW), 2, True)


def test_scores_of_an_unknown_kind_count_only_where_their_order_shows() -> None:
    assert retrieval.by_score(read([3.0, 3.0], kind="other"), NEW, 2.0) is None
    assert retrieval.by_score(read([3.0, None], kind="other"), NEW, 2.0) is None
    rising = retrieval.by_score(read([1.0, 3.0], kind="other"), NEW, 2.0)
    assert rising is not None
    assert rising.delivered == ("mem:s:0@1", NEW, "mem:s:1@1")


def test_what_a_filter_hid_is_no_candidate() -> None:
    op = read([0.9], k=1)
    hidden = Dropped("mem:s:hidden@1", 0.99, "filter")
    with_hidden = Operation(**{f: getattr(op, f) for f in op.__slots__} | {"dropped": (hidden,)})
    assert [c.ref for c in retrieval.candidates(with_hidden)] == ["mem:s:0@1"]


def test_where_no_score_decides_what_is_needed_is_not_pushed_out() -> None:
    op = read([0.9, 0.8, 0.7], k=3)
    placed = retrieval.last_within(op, NEW, keep={"mem:s:2@1"})
    assert placed == retrieval.Placed(("mem:s:0@1", "mem:s:2@1", NEW), 3, True)
    crowded = retrieval.last_within(op, NEW, keep=set(op.delivered))
    assert crowded == retrieval.Placed(op.delivered, 3, False)
