"""Answers stay bounded whatever was recorded, and say what they leave out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph.facts import Dropped, Operation, SpanFacts, Value
from memtrace_collector.graph.questions import receipts
from memtrace_collector.graph.questions.answered import (
    AS_THEY_ARE,
    MAX_PAGE_CHARS,
    Found,
    Texts,
    each,
    page,
)
from memtrace_collector.graph.questions.catalog import GRAPH_QUESTIONS
from memtrace_collector.graph.questions.question import named
from memtrace_collector.graph.questions.shapes import time_ns
from memtrace_collector.store.in_memory import InMemoryFactStore

GRAPH = "user:big"
TRACE, READ, ANSWER = "a" * 32, "b" * 16, "c" * 16
MEMORIES = tuple(f"mem:stub:{n}@{n:012x}" for n in range(300))


def big_store() -> InMemoryFactStore:
    """One search with 300 candidates of 3,000 characters each, half of them cut."""
    read = Operation(
        graph_id=GRAPH, trace_id=TRACE, span_id=READ, name="search_memory", step="retrieve",
        start_ns=10, end_ns=11, inputs=("query:q@000000000001",), delivered=MEMORIES[:150],
        scores=tuple(1 - n / 1000 for n in range(150)), score_kind="similarity",
        dropped=tuple(Dropped(ref, None, "limit", 151 + n) for n, ref in enumerate(MEMORIES[150:])),
    )  # fmt: skip
    answer = Operation(
        graph_id=GRAPH, trace_id=TRACE, span_id=ANSWER, name="chat", step="answer",
        start_ns=20, end_ns=21, inputs=("query:q@000000000001", *MEMORIES[:150]),
        outputs=("ans:1@000000000002",),
    )  # fmt: skip
    values = tuple(Value(graph_id=GRAPH, ref=ref, content="x" * 3_000) for ref in MEMORIES)
    return InMemoryFactStore.of(
        [SpanFacts(operation=read, values=values), SpanFacts(operation=answer)]
    )


def asked(store: InMemoryFactStore, question: str, **arguments: Any) -> Any:
    return named(GRAPH_QUESTIONS, question).answer(store, arguments, Texts(2_000))


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("why", {"answer": TRACE}),
        ("rank", {"record": "mem:stub:299", "span": TRACE}),
        ("operation", {"span": f"{TRACE}:{READ}", "limit": 100}),
        ("ancestry", {"answer": TRACE, "limit": 100}),
        ("users", {"ref": "mem:stub:1", "limit": 100}),
    ],
)
def test_no_answer_grows_with_what_was_recorded(question: str, arguments: dict[str, Any]) -> None:
    found = asked(big_store(), question, **arguments)
    assert len(json.dumps(found)) <= MAX_PAGE_CHARS + 2_000


def test_what_was_left_out_of_a_nested_list_is_counted() -> None:
    (read,) = asked(big_store(), "why", answer=TRACE)["reads"]
    assert read["candidates_left_out"] == 300 - len(read["candidates"]) > 0


def test_a_page_that_is_full_before_its_limit_says_where_to_go_on() -> None:
    first = asked(big_store(), "operation", span=f"{TRACE}:{READ}", limit=100)
    shown = len(first["references"])
    assert 1 < shown < 100
    assert (first["next"], first["total"]) == (str(shown), 301)
    rest = asked(big_store(), "operation", span=f"{TRACE}:{READ}", cursor=first["next"])
    assert rest["references"][0]["ref"] == MEMORIES[shown - 1]


def test_the_rank_of_a_cut_record_is_told_with_what_stood_above() -> None:
    (read,) = asked(big_store(), "rank", record="mem:stub:299", span=f"{TRACE}:{READ}")["reads"]
    assert read["candidates"] == [
        {
            "ref": MEMORIES[299],
            "rank": 300,
            "score": None,
            "outcome": "cut: limit",
            "used": False,
        }
    ]
    assert read["above"][0]["ref"] == MEMORIES[0]


def test_people_get_the_same_answer_whole() -> None:
    whole = receipts.why(big_store(), TRACE, "", AS_THEY_ARE).whole()
    (read,) = whole["reads"]
    assert len(read["candidates"]) == 300
    assert read["candidates"][0]["text"] == "x" * 3_000


def test_numbers_that_json_does_not_know_are_left_out() -> None:
    found = page(Found({"score": float("nan")}, "items", [float("inf")], list), 5, "")
    assert (found["score"], found["items"]) == (None, [None])


def test_an_item_too_long_for_a_page_is_shortened_and_shown() -> None:
    items = [[Texts(2_000).one("y" * 5_000) for _ in range(100)]]
    found = page(Found({}, "items", items, each(lambda item: {"texts": item})), 5, "")
    (item,) = found["items"]
    assert len(json.dumps(found)) < MAX_PAGE_CHARS
    assert item["texts"][0]["chars"] == 5_000
    assert item["texts_left_out"] == 100 - len(item["texts"])


@pytest.mark.parametrize("cursor", ["-1", "1.5", "٣", "next", " 1"])
def test_a_cursor_of_another_kind_is_refused(cursor: str) -> None:
    with pytest.raises(WrongUseError, match="no cursor"):
        page(Found({}, "items", [1], list), 5, cursor)


def test_a_cursor_behind_the_end_says_so() -> None:
    found = page(Found({}, "items", [1, 2], list), 5, "7")
    assert (found["items"], found["next"]) == ([], None)
    assert found["says"] == "nothing after 7: there are 2 items"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1970-01-01T01:00:00.5+01:00", 500_000_000),
        ("1970-01-01T00:00:00.123456789Z", 123_456_000),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_times_are_read_as_rfc_3339(text: str, expected: int | None) -> None:
    assert time_ns(text) == expected


def test_all_answers_of_a_graph_are_listed_when_asked_for() -> None:
    assert asked(big_store(), "answers")["total"] == 0
    (found,) = asked(big_store(), "answers", graph=GRAPH, flagged=False)["answers"]
    assert (found["answer"]["spanId"], found["flagged"]) == (ANSWER, None)
    with pytest.raises(WrongUseError, match="give `graph`"):
        asked(big_store(), "answers", flagged=False)
