"""When a text says something else than what it was made from."""

from __future__ import annotations

import pytest

from memtrace_collector.attribution.carrying.changed import has_instead, says_the_opposite
from memtrace_collector.attribution.texts.text import content_tokens

SAID = "Hi! We moved to Lisbon in May, and it has been lovely. I can't wait to see you."


@pytest.mark.parametrize(
    ("made", "opposite"),
    [
        ("They did not move to Lisbon in May.", True),
        ("It is not true that they moved to Lisbon in May", True),
        ("They moved to Lisbon in May.", False),
        ("They can't wait to see you in Lisbon.", False),
        ("Nobody has seen the parcel from Graz, not even the postman of Lisbon.", False),
    ],
)
def test_a_negation_more_than_the_repeated_sentence_has_is_the_opposite(
    made: str, opposite: bool
) -> None:
    assert says_the_opposite(made, content_tokens("Lisbon"), [SAID], frozenset()) is opposite


def test_a_negation_that_the_original_has_too_is_none_more() -> None:
    original = "Running without any pain was a great success."
    assert not says_the_opposite(
        "Running without pain was a great success.",
        content_tokens("success"),
        [original],
        frozenset(),
    )
    assert says_the_opposite(
        "Running without pain was not a great success.",
        content_tokens("success"),
        [original],
        frozenset(),
    )


def test_wrong_words_beside_all_needed_ones_are_in_nobodys_place() -> None:
    needed, wrong = content_tokens("Lisbon"), content_tokens("Porto")
    assert has_instead("They moved to Porto.", needed, wrong)
    assert not has_instead("They moved from Porto to Lisbon.", needed, wrong)
