"""Words compare equal across inflections, scripts and ways of writing numbers."""

from __future__ import annotations

import pytest

from memtrace_collector.attribution.texts import text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("allergic to peanuts", "a peanut allergy"),
        ("She ran two marathons", "running 2 marathon"),
        ("cities", "city"),
        ("8:00 PM to 9:30 PM", "20:00-21:30"),
        ("at 8 pm", "8:00 p.m."),
        ("75kg", "75 kg"),
        ("on the 4th", "on the fourth"),
        ("1,200 euros", "1200 euro"),
        ("Ｌｉｓｂｏｎ", "lisbon"),
        ("user’s dog", "dog of the user"),
    ],
)
def test_equal_content_in_other_words(one: str, other: str) -> None:
    assert text.content_tokens(one) == text.content_tokens(other)


def test_scripts_without_spaces_are_compared_by_pairs() -> None:
    assert text.coverage(text.content_tokens("北京"), ["我昨天去了北京"]) == 1
    assert text.coverage(text.content_tokens("上海"), ["我昨天去了北京"]) == 0
    assert {"東京", "京都"} <= text.content_tokens("東京都")


def test_words_without_content_leave_nothing() -> None:
    assert text.content_tokens("It was then that you did not have them, user.") == frozenset()


def test_coverage_pools_texts() -> None:
    needed = text.content_tokens("ramen gyoza")
    assert text.coverage(needed, ["She cooks ramen"]) == 0.5
    assert text.coverage(needed, ["She cooks ramen", "and gyoza"]) == 1


def test_negation_reaches_only_its_own_clause() -> None:
    tokens = text.content_tokens("opera jazz")
    assert text.negated("I don't like opera. I like jazz.", tokens) == {"opera"}
    assert text.negated("No worries! Opera it is.", tokens) == frozenset()


@pytest.mark.parametrize(
    "reply",
    [
        "I do not know.",
        "I'm sorry, I don't have any information about that.",
        "That was not mentioned.",
        "I am not sure.",
        "我不知道",
        "There is no record of it.",
    ],
)
def test_replies_that_decline(reply: str) -> None:
    assert text.declines(reply)


@pytest.mark.parametrize(
    "reply", ["You live in Porto, not Lisbon.", "No, peanuts are risky.", "Nova."]
)
def test_replies_that_assert(reply: str) -> None:
    assert not text.declines(reply)


def test_titles_end_no_sentence() -> None:
    assert text.sentences("I saw Dr. Palmer. He was late.\nTwice") == [
        "I saw Dr. Palmer.",
        "He was late.",
        "Twice",
    ]
    assert "quigle" in text.proper_names("x Dr. Quigley")


@pytest.mark.parametrize(
    "hostile", ["", "\x00", "a" * 100_000, "'" * 1000, "\ud800", "🙂🙂", "9" * 5000]
)
def test_any_text_can_be_read(hostile: str) -> None:
    text.content_tokens(hostile)
    text.declines(hostile)
    text.sentences(hostile)
