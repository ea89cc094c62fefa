"""Whose a statement is: the owner's own, or a relation's."""

from __future__ import annotations

import pytest

from memtrace_collector.attribution.texts.owners import owner_named, owner_was_lost


def test_the_owner_named_is_the_relation_that_opens_a_text() -> None:
    assert owner_named("User's older sister sails") == owner_named("My sister sails") != frozenset()
    assert owner_named("User sails with a sister") == frozenset()


@pytest.mark.parametrize(
    ("right", "wrong", "lost"),
    [
        ("My cousin Ines went vegan.", "User went vegan", True),
        ("My cousin Ines went vegan.", "User's cousin Ines went vegan", False),
        ("My cousin Ines went vegan.", "Ines went vegan", False),
        ("I went vegan.", "User went vegan", False),
    ],
)
def test_an_owner_is_lost_when_it_is_put_down_as_the_users(
    right: str, wrong: str, lost: bool
) -> None:
    assert owner_was_lost(right, wrong) is lost
