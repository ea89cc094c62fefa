"""The need of a question, and whether a reply meets it."""

from __future__ import annotations

from datetime import date

import pytest

from memtrace_collector.attribution.carrying.needs import answered, classify, needed_tokens
from memtrace_collector.attribution.texts.text import content_tokens

TODAY = date(2026, 1, 10)


@pytest.mark.parametrize(
    ("question", "expected", "kind"),
    [
        ("Where do I live?", "Lisbon", "content"),
        ("Where do I live?", "Lisbon, Portugal", "content"),
        ("What do I cook?", "ramen and gyoza", "list"),
        ("Which sports?", "golf, tennis, judo", "list"),
        ("When did I move?", "in March 2025", "temporal"),
        ("How many dogs?", "three", "content"),
        ("Would she like a steak?", "Likely no, she is vegan", "inference"),
        ("Am I married?", "No", "inference"),
        ("What is my car?", "", "unanswerable"),
        ("What is my car?", "Not mentioned", "unanswerable"),
        ("What is my car?", None, "unknown"),
    ],
)
def test_kind_of_need(question: str, expected: str | None, kind: str) -> None:
    assert classify(question, expected, TODAY).kind == kind


def test_needed_words_are_those_the_question_does_not_have() -> None:
    question = content_tokens("Which city does Ines live in?")
    assert needed_tokens("Ines lives in the city of Porto", question) == {"porto"}
    assert needed_tokens("Ines", question) == {"ine"}


@pytest.mark.parametrize(
    ("question", "expected", "reply", "right"),
    [
        ("Where do I live?", "Lisbon, Portugal", "Lisbon", None),
        ("Where do I live?", "Lisbon", "Madrid", False),
        ("Where do I live?", "Lisbon", "I don't know whether it is Lisbon.", None),
        ("What do I cook?", "ramen and gyoza", "gyoza; ramen too", True),
        ("What do I cook?", "ramen and gyoza", "ramen and sushi", False),
        ("When did I move?", "4 January 2026", "On the 4th of January", True),
        ("When did I move?", "4 January 2026", "6 days ago", True),
        ("When did I move?", "4 January 2026", "5 January 2026", False),
        ("How many dogs?", "three", "You have 3 dogs.", True),
        ("How many dogs?", "three", "You have 13 dogs.", False),
        ("Can I eat nuts?", "No, the user is allergic", "Yes, the allergy is mild.", False),
        ("Am I married?", "No", "No.", True),
        ("Do I smoke?", "No, the user quit", "You stopped.", None),
        ("When is lunch?", "from 12:15 to 13:00", "12:15 PM to 1 PM", True),
        ("When is lunch?", "from 12:15 to 13:00", "12:15 PM to 2 PM", False),
        ("What is my car?", "", "I have no information on that.", True),
        ("What is my car?", "", "A Volvo.", False),
    ],
)  # fmt: skip
def test_reply_meets_the_need(question: str, expected: str, reply: str, right: bool | None) -> None:
    assert answered(classify(question, expected, TODAY), reply, TODAY) is right
