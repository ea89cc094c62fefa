from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtrace_collector.graph.word_diff import ADDED, REMOVED, SAME, Segment, word_diff


def _before(parts: list[Segment]) -> str:
    return "".join(part.text for part in parts if part.kind != ADDED)


def _after(parts: list[Segment]) -> str:
    return "".join(part.text for part in parts if part.kind != REMOVED)


def test_a_changed_word_is_the_only_one_marked() -> None:
    assert word_diff("User lives in Lisbon.", "User lives in Porto.") == [
        Segment("User lives in ", SAME),
        Segment("Lisbon", REMOVED),
        Segment("Porto", ADDED),
        Segment(".", SAME),
    ]


def test_changes_with_a_space_between_them_are_read_as_one() -> None:
    assert word_diff("met in May 2019", "met in June 2020") == [
        Segment("met in ", SAME),
        Segment("May 2019", REMOVED),
        Segment("June 2020", ADDED),
    ]


def test_text_without_spaces_is_compared_by_characters() -> None:
    assert word_diff("我住在里斯本", "我住在波尔图") == [
        Segment("我住在", SAME),
        Segment("里斯本", REMOVED),
        Segment("波尔图", ADDED),
    ]


def test_equal_texts_have_no_change_and_empty_ones_no_segment() -> None:
    assert word_diff("the same", "the same") == [Segment("the same", SAME)]
    assert word_diff("", "") == []
    assert word_diff("", "new") == [Segment("new", ADDED)]


@given(st.text(alphabet="ab \n.é里", max_size=40), st.text(alphabet="ab \n.é里", max_size=40))
def test_the_segments_hold_both_texts(before: str, after: str) -> None:
    parts = word_diff(before, after)
    assert (_before(parts), _after(parts)) == (before, after)
    assert all(part.text for part in parts)
    assert all(one.kind != other.kind for one, other in pairwise(parts))


def test_words_added_at_the_end_leave_the_rest_unmarked() -> None:
    assert word_diff("lives in Lisbon", "lives in Lisbon since March") == [
        Segment("lives in Lisbon", SAME),
        Segment(" since March", ADDED),
    ]


def test_words_that_a_longer_passage_ends_with_are_no_change() -> None:
    assert word_diff("No problem. The dates are March", "The dates are April") == [
        Segment("No problem. ", REMOVED),
        Segment("The dates are ", SAME),
        Segment("March", REMOVED),
        Segment("April", ADDED),
    ]


@pytest.mark.parametrize("words", [("a",), ("a", "b"), ("a", "b", "a", "c")])
def test_texts_of_repeated_words_are_compared_in_time(words: tuple[str, ...]) -> None:
    before = " ".join(words[n % len(words)] for n in range(500))
    after = " ".join(words[(n * 7 + n // 3) % len(words)] for n in range(500))
    started = time.perf_counter()
    parts = word_diff(f"x {before} y", f"z {after} w")
    assert time.perf_counter() - started < 5
    assert (_before(parts), _after(parts)) == (f"x {before} y", f"z {after} w")


@pytest.mark.parametrize("shared", ["", "begins alike "])
def test_two_large_texts_are_told_apart_in_time(shared: str) -> None:
    before = shared + " ".join(f"a{n}" for n in range(200_000))
    after = shared + " ".join(f"b{n}" for n in range(200_000))
    started = time.perf_counter()
    parts = word_diff(before, after)
    assert time.perf_counter() - started < 5
    assert (_before(parts), _after(parts)) == (before, after)
    assert [part.kind for part in parts] == ([SAME] if shared else []) + [REMOVED, ADDED]
