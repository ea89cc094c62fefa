"""The rules with a model for what they leave open, over real HTTP."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.model.budget import Limits
from memtrace_collector.attribution.model.collect import Collected
from memtrace_collector.attribution.model.judge import MODEL
from tests.benchmarks.bench_model_prompts import MODELS, MOST_TOKENS, measure
from tests.contract.held_out.story import Story
from tests.contract.test_scenarios import NAMES, told_facts, verdict_of
from tests.instrumentors.openai_stub import OpenAIStub, Reply
from tests.memtrace_collector.attribution.model import prompts
from tests.memtrace_collector.attribution.model.cases import (
    EXPECTED,
    NO_LIMIT,
    asking,
    case_from,
    case_of,
    open_reply,
    ranked_out_paraphrase,
)
from tests.memtrace_collector.attribution.model.prompts import HonestModel

CARRIES = HonestModel({"mother and father": EXPECTED})
CARRIES_NOT = HonestModel({})


class Counted:
    """Metrics as a dict."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, name: str, value: int, **attributes: str) -> None:
        self.counts[".".join([name, *attributes.values()])] += value


def test_an_open_text_is_an_abstention_of_the_rules() -> None:
    verdict = attribute(case_of(ranked_out_paraphrase()))
    assert verdict.error_type == "insufficient_evidence"
    assert not verdict.missing


def test_a_yes_lets_the_rules_go_on_to_the_loss_behind_it() -> None:
    with OpenAIStub(CARRIES) as stub, asking(stub.base_url) as judge:
        verdict = judge(case_of(ranked_out_paraphrase()))
    assert verdict.error_type == "ranked_out"
    assert verdict.method == "model"
    assert verdict.basis == ("structure", "text", "model")
    assert 0 < verdict.score < 0.9


def test_a_no_makes_the_record_the_loss() -> None:
    with OpenAIStub(CARRIES_NOT) as stub, asking(stub.base_url) as judge:
        verdict = judge(case_of(ranked_out_paraphrase()))
    assert verdict.error_type == "distortion"
    assert "model" in verdict.basis


def test_a_reply_that_is_right_in_other_words_is_a_wrong_judge() -> None:
    means = HonestModel({"nearby": EXPECTED})
    with OpenAIStub(means) as stub, asking(stub.base_url) as judge:
        verdict = judge(case_of(open_reply()))
    assert verdict.error_type == "bad_judge"
    assert verdict.method == "model"


def test_a_reply_that_is_wrong_goes_through_the_table() -> None:
    with OpenAIStub(CARRIES_NOT) as stub, asking(stub.base_url) as judge:
        verdict = judge(case_of(open_reply()))
    assert verdict.stage == "response"
    assert verdict.method == "model"


def test_a_yes_that_comes_only_once_is_no_yes() -> None:
    asked: Counter[str] = Counter()

    def wavering(request: dict[str, Any]) -> str:
        prompt = prompts.parse(request)
        asked["choice"] += bool(prompt.options)
        return (CARRIES if asked["choice"] < 2 else CARRIES_NOT)(request)

    with OpenAIStub(wavering) as stub, asking(stub.base_url) as judge:
        verdict = judge(case_of(ranked_out_paraphrase()))
    assert verdict.error_type == "insufficient_evidence"
    assert verdict.method == "rules"


def test_a_case_that_the_rules_are_sure_of_asks_nothing() -> None:
    story = Story("ada").day(1)
    learned = story.learn("My dog is called Rex.")
    story.turn("What is my dog called?", "I don't know.", learned.record)
    story.flag("Rex", learned.message)
    with OpenAIStub(CARRIES) as stub, asking(stub.base_url) as judge:
        verdict = judge(case_of(story))
        assert not stub.chat_requests
    assert verdict == attribute(case_of(story))


def test_what_should_be_in_no_text_is_not_asked_for() -> None:
    story = Story("ada").day(1)
    learned = story.learn("My wife is allergic to shellfish.")
    story.turn("What am I allergic to?", "To shellfish.", learned.record)
    story.flag("")
    with OpenAIStub(CARRIES) as stub, asking(stub.base_url, method=MODEL) as judge:
        assert judge(case_of(story)).stage == "response"
        assert not stub.chat_requests


def test_the_method_model_also_asks_where_wording_decided() -> None:
    story = ranked_out_paraphrase("Vera lives in Graz near mother and father")
    assert attribute(case_of(story)).stage == "extraction"
    with OpenAIStub(CARRIES) as stub, asking(stub.base_url, method=MODEL) as judge:
        assert judge(case_of(story)).error_type == "ranked_out"


@pytest.mark.parametrize("name", NAMES[::3])
def test_taking_note_of_doubts_changes_no_verdict(name: str) -> None:
    case = case_from(told_facts(name)[0])
    assert attribute(case, judgements=Collected({})) == verdict_of(name)


@pytest.mark.parametrize("says", ["yes", "no"])
@pytest.mark.parametrize("name", [n for n in NAMES if verdict_of(n).basis == ("structure",)])
def test_a_model_never_overrules_what_structure_shows(name: str, says: str) -> None:
    """A model that says yes, or no, to everything."""

    def always(request: dict[str, Any]) -> str:
        prompt = prompts.parse(request)
        if not prompt.options:
            return CARRIES(request)
        expected = next(
            (label for label, option in prompt.options.items() if option not in CARRIES.others),
            prompt.none,
        )
        return prompts.answers(
            {
                label: CARRIES_NOT.option(prompt, label)
                if content.startswith((prompts.CONTROL, prompts.BLANK)) or says == "no"
                else expected
                for label, content in prompt.texts.items()
            },
            prompt,
        )

    rules = verdict_of(name)
    if rules.error_type == "insufficient_evidence":
        return
    with OpenAIStub(always) as stub, asking(stub.base_url, method=MODEL) as judge:
        verdict = judge(case_from(told_facts(name)[0]))
    assert (verdict.error_type, verdict.decisive) == (rules.error_type, rules.decisive)


def test_every_prompt_and_reply_is_kept_with_the_verdict() -> None:
    with OpenAIStub(CARRIES) as stub, asking(stub.base_url) as judge:
        kept = judge(case_of(ranked_out_paraphrase())).to_json()["model"]
        sent = stub.chat_requests
    assert kept["calls"] == len(kept["asked"]) == len(sent)
    for call, request in zip(kept["asked"], sent):
        assert all(message["content"] in call["prompt"] for message in request["messages"])
        assert json.loads(call["reply"])
    assert kept["tokens"] == {"prompt": len(sent), "completion": len(sent)}
    assert kept["cost"] == pytest.approx(len(sent) * 3e-6)


def test_the_same_case_is_asked_once(tmp_path: Path) -> None:
    """The cache outlives the process, and does not care for the marks and labels drawn."""
    file = tmp_path / "cache.db"
    with OpenAIStub(CARRIES) as stub:
        with asking(stub.base_url, cache=file, seed=1) as judge:
            first = judge(case_of(ranked_out_paraphrase()))
        asked = len(stub.chat_requests)
        with asking(stub.base_url, cache=file, seed=2) as judge:
            second = judge(case_of(ranked_out_paraphrase()))
        assert len(stub.chat_requests) == asked > 0
    assert first == second


def test_another_model_is_asked_anew(tmp_path: Path) -> None:
    file = tmp_path / "cache.db"
    with OpenAIStub(CARRIES) as stub:
        for _ in range(2):
            with asking(stub.base_url, cache=file) as judge:
                judge._asker._endpoint.model += "-2"
                judge(case_of(ranked_out_paraphrase()))
        asked = len(stub.chat_requests)
        with asking(stub.base_url, cache=file) as judge:
            judge(case_of(ranked_out_paraphrase()))
        assert len(stub.chat_requests) == 2 * asked


@pytest.mark.fault("F23")
@pytest.mark.parametrize(
    ("case", "run", "why"),
    [
        (Limits(calls=1, tokens=10**6), NO_LIMIT, "case budget"),
        (Limits(calls=9, tokens=300), NO_LIMIT, "case budget"),
        (Limits(calls=9, tokens=10**6, cost=1e-9), NO_LIMIT, "case budget"),
        (NO_LIMIT, Limits(calls=2, tokens=10**6), "run budget"),
        (NO_LIMIT, Limits(calls=9, tokens=300), "run budget"),
    ],
)
def test_a_spent_budget_leaves_the_verdict_to_the_rules(
    case: Limits, run: Limits, why: str
) -> None:
    metrics = Counted()
    with (
        OpenAIStub(CARRIES) as stub,
        asking(stub.base_url, case=case, run=run, metrics=metrics) as judge,
    ):
        verdict = judge(case_of(ranked_out_paraphrase()))
        assert len(stub.chat_requests) <= min(case.calls, run.calls, 2)
    assert verdict.error_type == "insufficient_evidence"
    assert verdict.model is not None
    assert verdict.model["stopped"] == why
    assert why in verdict.explanation
    assert metrics.counts[f"memtrace.model.stopped.{why}"] == 1


@pytest.mark.fault("F23")
def test_an_endpoint_that_cannot_be_reached_leaves_the_verdict_to_the_rules() -> None:
    with OpenAIStub(CARRIES) as stub:
        gone = stub.base_url
    with asking(gone) as judge:
        verdict = judge(case_of(ranked_out_paraphrase()))
    assert verdict.error_type == "insufficient_evidence"
    assert verdict.method == "rules"
    assert verdict.model is not None
    assert verdict.model["calls"] == 0
    assert verdict.model["stopped"].startswith("unreachable")
    assert "By rules alone" in verdict.explanation


@pytest.mark.fault("F23")
@pytest.mark.parametrize(
    "reply",
    [
        "I think the answer is yes.",
        "[]",
        '{"answers": []}',
        '{"answers": [{"text": "x", "option": "y"}, {"text": "z", "option": "y"}]}',
        "[" * 5_000,
        "",
    ],
)
def test_a_reply_of_another_form_is_no_answer(reply: str) -> None:
    metrics = Counted()
    with OpenAIStub(lambda _: Reply((reply,))) as stub, asking(stub.base_url, metrics=metrics) as j:
        verdict = j(case_of(ranked_out_paraphrase()))
    assert verdict.error_type == "insufficient_evidence"
    assert verdict.method == "rules"
    assert metrics.counts["memtrace.model.invalid_replies"] >= 1


@pytest.mark.fault("F23")
def test_a_quote_that_is_not_in_the_text_is_no_yes() -> None:
    def forging(request: dict[str, Any]) -> str:
        said = json.loads(CARRIES(request))
        for each in said.get("answers", ()):
            each["quote"] = "Vera wants to be closer to her parents"
        return json.dumps(said)

    with OpenAIStub(forging) as stub, asking(stub.base_url) as judge:
        verdict = judge(case_of(ranked_out_paraphrase()))
    assert verdict.error_type == "insufficient_evidence"
    assert verdict.model is not None
    assert "quote not found" in {call["why"] for call in verdict.model["asked"]}


@pytest.mark.parametrize("says", ["yes", "no"])
def test_the_prompts_of_a_case_stay_under_2000_tokens_and_do_not_grow_with_its_graph(
    says: str,
) -> None:
    """Also where every further record is as doubtful (10^4 operations: the benchmark)."""
    small, large = (measure(operations, MODELS[says]) for operations in (50, 1_000))
    assert small.tokens == pytest.approx(large.tokens, rel=0.02)
    assert 0 < large.tokens <= MOST_TOKENS
    assert large.verdict == {"yes": "ranked_out", "no": "distortion"}[says]


@pytest.mark.parametrize("evidence_given", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "hedged_but_right",
        "price_with_another_sign",
        "yes_without_the_word",
        "less_exact_than_expected",
        "right_in_another_language",
    ],
)
def test_a_model_settles_what_the_scenarios_leave_to_it(name: str, evidence_given: bool) -> None:
    """A reply that may be right, of which the rules cannot tell."""
    case = case_from(told_facts(name)[0], evidence_given=evidence_given)
    assert attribute(case).error_type == "insufficient_evidence"
    says_yes = HonestModel({"": case.flag.expected or ""})
    with OpenAIStub(says_yes) as stub, asking(stub.base_url) as judge:
        assert judge(case).error_type == told_facts(name)[1].types[0]
