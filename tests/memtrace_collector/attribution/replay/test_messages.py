"""Edits of a prompt: a value takes the form of what it replaces or stands beside."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from memtrace_collector.attribution.replay import messages
from memtrace_collector.attribution.replay.messages import marked

VALUES = {"mem:a@1": "User likes tea", "mem:b@1": "User lives in Porto"}
LISTED = "Memories:\n- [2026-01-02] User likes tea\n- [2026-01-05] User lives in Porto\n\nQuestion?"
DAY = date(2025, 12, 24)


def test_a_replaced_value_brings_its_own_date() -> None:
    found = messages.replaced(marked("user", LISTED, VALUES), "mem:b@1", "mem:b@2", "Lisbon", DAY)
    assert found is not None
    assert found.text == LISTED.replace("[2026-01-05] User lives in Porto", "[2025-12-24] Lisbon")
    assert found.mark_of("mem:b@1") is None
    mark = found.mark_of("mem:b@2")
    assert mark is not None
    assert found.text[mark.start : mark.end] == "Lisbon"


def test_an_inserted_value_gets_a_line_like_its_neighbours() -> None:
    prompt = marked("user", LISTED, VALUES)
    after = messages.inserted(prompt, "mem:a@1", "mem:c@1", "two\nlines", DAY, after=True)
    assert after is not None
    lines = after.text.splitlines()
    assert lines[1:4] == [
        "- [2026-01-02] User likes tea",
        "- [2025-12-24] two lines",
        "- [2026-01-05] User lives in Porto",
    ]
    before = messages.inserted(prompt, "mem:a@1", "mem:c@1", "first", DAY, after=False)
    assert before is not None
    assert before.text.splitlines()[1] == "- [2025-12-24] first"


def test_on_one_line_the_separator_is_kept() -> None:
    prompt = marked("system", "Know: User likes tea | User lives in Porto.", VALUES)
    found = messages.inserted(prompt, "mem:b@1", "mem:c@1", "new", None, after=True)
    assert found is not None
    assert found.text == "Know: User likes tea | User lives in Porto | new."


def test_a_removed_value_takes_its_line_along() -> None:
    found = messages.removed(marked("user", LISTED, VALUES), "mem:a@1")
    assert found is not None
    assert found.text == LISTED.replace("- [2026-01-02] User likes tea\n", "")
    assert found.mark_of("mem:b@1") is not None


def test_without_a_neighbour_a_value_stands_before_the_question() -> None:
    found = messages.appended(messages.Message("user", "Memories:\n\nQ?"), "mem:c@1", "new", "Q?")
    assert found.text == "Memories:\n\n- new\nQ?"
    at_end = messages.appended(messages.Message("system", "Memories:"), "mem:c@1", "new")
    assert at_end.text == "Memories:\n- new"


def test_a_value_that_is_not_there_word_for_word_is_not_touched() -> None:
    prompt = marked("user", "nothing of it", VALUES)
    assert messages.replaced(prompt, "mem:a@1", "mem:a@2", "x", None) is None
    assert messages.removed(prompt, "mem:a@1") is None
    assert messages.inserted(prompt, "mem:a@1", "mem:c@1", "x", None, after=True) is None


@given(
    st.lists(st.text("ab \n", min_size=3, max_size=9), min_size=1, max_size=5),
    st.text("ab\n- ", max_size=40),
    st.text(max_size=9),
)
def test_every_mark_shows_its_value_whatever_is_edited(
    contents: list[str], frame: str, new: str
) -> None:
    values = {f"mem:{i}@1": content for i, content in enumerate(contents)}
    prompt = marked("user", frame.join(["", *contents]), values)
    edited = [
        messages.replaced(prompt, "mem:0@1", "mem:new@1", new, DAY),
        messages.removed(prompt, "mem:0@1"),
        messages.inserted(prompt, "mem:0@1", "mem:new@1", new, DAY, after=True),
        messages.inserted(prompt, "mem:0@1", "mem:new@1", new, DAY, after=False),
        messages.appended(prompt, "mem:new@1", new, before="a"),
    ]
    for message in (prompt, *filter(None, edited)):
        for mark in message.marks:
            shown = message.text[mark.start : mark.end]
            expected = values.get(mark.ref, new)
            assert shown in (expected, " ".join(expected.split()))
