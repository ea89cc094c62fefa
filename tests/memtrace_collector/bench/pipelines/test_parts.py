"""The programs' parts: what they score, cut and draw."""

from __future__ import annotations

import pytest

from memtrace_collector.bench.pipelines import ranking
from memtrace_collector.bench.pipelines.segments import segments, without_needed
from memtrace_collector.bench.pipelines.surface import surface
from memtrace_collector.bench.planned import Planting
from tests.memtrace_collector.bench import bench_kit as kit

TEXTS = ("The cat sleeps.", "A bicycle for 240 euros.", "The bicycle has a bell, the cat none.")


def test_bm25_scores_only_texts_that_share_a_word_and_prefers_the_rarer() -> None:
    scores = ranking.bm25("the price of the bicycle in euros", TEXTS)
    assert scores[0] == 0
    assert ranking.order(scores) == [1, 2, 0]


def test_bm25_of_nothing_is_nothing() -> None:
    assert ranking.bm25("bicycle", ()) == []
    assert ranking.bm25("bicycle", ("", "")) == [0, 0]


def test_cosine_of_a_zero_vector_is_zero() -> None:
    assert ranking.cosine((0.0, 0.0), (1.0, 2.0)) == 0
    assert ranking.cosine((1.0, 2.0), (2.0, 4.0)) == pytest.approx(1)


def test_fusion_prefers_what_both_rankings_have_early() -> None:
    scores = ranking.fused([(3, 1, 2), (3, 2)])
    assert sorted(scores, key=lambda index: -scores[index]) == [3, 2, 1]


def test_segments_are_whole_sentences_and_keep_every_word() -> None:
    text = "One two three. Four five six. Seven eight nine."
    assert segments(text, 30) == ["One two three. Four five six.", "Seven eight nine."]
    assert segments("word " * 100, 30) == [("word " * 100).strip()]


def test_the_segment_that_says_the_answer_is_the_one_that_is_lost() -> None:
    kept = without_needed(kit.question(), ["Hello there, Ben.", "It cost 240 euros."])
    assert kept == ["Hello there, Ben."]


def test_an_only_segment_is_cut_before_the_answer() -> None:
    kept = without_needed(kit.question(), ["I bought a red bicycle for 240 euros yesterday."])
    assert kept == ["I bought a red bicycle for"]


def test_a_surface_is_drawn_by_the_question_and_fixed_by_what_the_fault_needs() -> None:
    needs = {"merge_dropped": {"decides": True, "raw": False}}
    planting = Planting(kind="merge_dropped", message=kit.PRICE)
    plain, other = surface(kit.case("staged"), needs), surface(kit.case("staged", name="b"), needs)
    fixed = surface(kit.case("staged", planting), needs)
    assert plain == other
    assert fixed.decides and not fixed.raw
    assert fixed.k == plain.k and fixed.declares_answer == plain.declares_answer


def test_surfaces_differ_between_questions() -> None:
    drawn = {
        surface(kit.case("staged", question=kit.question(id=f"q{number}")), {})
        for number in range(20)
    }
    assert len(drawn) > 10
