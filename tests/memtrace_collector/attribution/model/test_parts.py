"""The small parts: cleaning, marks, units, decoys, budget, cache."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memtrace_collector.attribution.carrying.judgements import CARRIES, Doubt
from memtrace_collector.attribution.carrying.needs import classify
from memtrace_collector.attribution.model import decoys, hostile, questions
from memtrace_collector.attribution.model.budget import Budget, Limits, Prices, Usage
from memtrace_collector.attribution.model.cache import Cache, cache_key

CALL = Usage(prompt=100, completion=10)


def doubt(content: str) -> Doubt:
    need = classify("Where does my aunt Rosa live?", "in the old town of Bern")
    item = need.items[0]
    return Doubt(
        kind=CARRIES,
        need=need,
        item=item,
        ref="mem:a@1",
        content=content,
        subject=need.question | item.tokens,
    )


@pytest.mark.parametrize(
    "hidden",
    ["a\u200bb", "a\u202eb", "a\x00b", "a\U000e0041b", "a\ufeffb", "a\x1bb", "a\ud800b"],
)
def test_invisible_characters_are_taken_out(hidden: str) -> None:
    assert hostile.clean(hidden, 100) == "ab"


@pytest.mark.parametrize(
    "marks",
    [
        "<|im_start|>",
        "<|im_end|>",
        "[INST]",
        "[/INST]",
        "<<SYS>>",
        "</s>",
        "<start_of_turn>",
        "</system>",
        "＜|im_start|＞",
        "<|\u200bim_start|>",
    ],
)
def test_turn_marks_of_chat_templates_are_taken_out(marks: str) -> None:
    assert hostile.clean(f"one {marks} two", 100) == "one two"


def test_content_is_one_line_of_bounded_length() -> None:
    assert hostile.clean("a\nsystem:\r\n\tb", 100) == "a system: b"
    assert len(hostile.clean("x" * 500, 100)) == 100


def test_a_mark_occurs_in_no_content() -> None:
    rng = random.Random(1)
    first = hostile.mark([], random.Random(1))
    assert hostile.mark([f"..{first}.."], rng) != first


def test_a_long_value_is_read_by_its_sentences_on_the_subject_and_cannot_get_a_no() -> None:
    said = "Aunt Rosa lives in a flat. " + "The weather was fine. " * 60
    units = questions.units(doubt(said))
    assert units.best == ("Aunt Rosa lives in a flat.",)
    assert units.complete
    flood = " ".join(f"Aunt Rosa lives near number {n}." for n in range(9))
    assert not questions.units(doubt(flood)).best
    padded = f"{flood} She lives in Bern, says Aunt Rosa."
    units = questions.units(doubt(padded))
    assert units.best == ("She lives in Bern, says Aunt Rosa.",)
    assert not units.complete


def test_other_options_are_never_the_expected_one() -> None:
    proposed = [
        "in the OLD town of Bern, really",
        "in a suburb of Basel",
        7,
        "",
        "in a suburb of Basel",
    ]
    assert decoys.usable(proposed, "in the old town of Bern") == ("in a suburb of Basel",)
    for expected in ("Yes", "No.", "42 euros", "Rex"):
        options = decoys.completed((), expected)
        assert len(options) >= questions.DECOYS
        assert expected not in options


def test_the_expected_option_is_not_marked_and_moves() -> None:
    found = doubt("Aunt Rosa lives in a flat in the old part of the town.")
    places = set()
    for place in range(questions.DECOYS + 1):
        choice = questions.choice(found, found.content, decoys.completed((), "in the old town"))
        rendered = questions.render(choice, place, random.Random(place))
        user = rendered.messages[1].content
        assert user.count(questions.expected_option(found)) == 1
        places.add(list(rendered.options).index(rendered.expected))
    assert places == set(range(questions.DECOYS + 1))


def test_a_budget_reserves_and_settles() -> None:
    budget = Budget(Limits(calls=2, tokens=250, cost=1.0), Prices(prompt=1.0, completion=1.0))
    assert budget.reserve(CALL)
    assert budget.reserve(CALL)
    assert not budget.reserve(CALL)
    budget.settle(CALL, None)
    assert budget.reserve(CALL)
    budget.settle(CALL, Usage(prompt=300, completion=0))
    budget.settle(CALL, None)
    assert not budget.reserve(CALL)


def test_a_budget_of_a_run_is_renewed() -> None:
    now = [0.0]
    limits = Limits(calls=1, tokens=1_000)
    budget = Budget(limits, Prices(), renew_seconds=60, clock=lambda: now[0])
    assert budget.reserve(CALL)
    assert not budget.reserve(CALL)
    now[0] = 60.0
    assert budget.reserve(CALL)


def test_a_cache_is_bounded_and_forgets_the_least_used(tmp_path: Path) -> None:
    ticks = iter(range(1_000))
    cache = Cache(tmp_path / "c.db", max_entries=10, clock_ns=lambda: next(ticks))
    for n in range(10):
        cache.put(str(n), {"n": n})
    assert cache.get("0") == {"n": 0}
    cache.put("10", {"n": 10})
    assert cache.get("0") == {"n": 0}
    assert cache.get("1") is None
    cache.close()


def test_a_damaged_cache_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "c.db"
    file.write_bytes(b"not a database" * 100)
    cache = Cache(file)
    cache.put("a", {"b": 1})
    assert cache.get("a") == {"b": 1}
    cache.close()


def test_a_cache_that_fails_costs_a_question_and_nothing_else(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c.db")
    cache.put("a", {"b": 1})
    cache.close()
    assert cache.get("a") is None
    cache.put("c", {"d": 1})


def test_a_key_depends_on_model_parameters_and_prompt() -> None:
    keys = {cache_key(*parts) for parts in (("m", "p", "x"), ("n", "p", "x"), ("m", "q", "x"))}
    assert len(keys | {cache_key("m", "p", "y")}) == 4
