"""An answer whose model call failed, and facts that name somebody else."""

from __future__ import annotations

from msgspec import structs

from tests.contract.held_out.story import Story
from tests.contract.test_scenarios import scenarios, verdict_from


def failed(reply: str) -> Story:
    story = Story("ann").day(1)
    told = story.learn("My sister's wedding will be held in Graz.")
    story.turn("Where will my sister's wedding be held?", reply, told.record)
    story.flag("Graz", told.message)
    return story


def with_failed_answer(story: Story) -> list[scenarios.SpanFacts]:
    return [
        structs.replace(
            each, operation=structs.replace(each.operation, error_type="openai.APIError")
        )
        if each.operation and each.operation.step == "answer"
        else each
        for each in scenarios.facts_of(story.otlp())
    ]


def test_an_apology_for_a_failed_call_is_no_answer_of_memory() -> None:
    story = failed("Sorry, something went wrong. Please try again.")
    verdict = verdict_from(with_failed_answer(story))
    assert verdict.error_type == "unrelated"
    assert not verdict.decisive
    assert "openai.APIError" in verdict.explanation


def test_a_right_answer_that_broke_off_late_is_right() -> None:
    verdict = verdict_from(with_failed_answer(failed("It will be held in Graz.")))
    assert verdict.error_type == "bad_judge"


def test_the_same_apology_of_a_call_that_did_not_fail_is_the_models() -> None:
    story = failed("Sorry, something went wrong. Please try again.")
    assert verdict_from(scenarios.facts_of(story.otlp())).error_type != "unrelated"


def test_a_fact_that_names_whom_only_the_reply_names_is_distorted() -> None:
    story = Story("ann").day(1)
    told = story.learn("My second parrot is called Pebble.", "Martha has a parrot, Pebble")
    story.turn("What is the name of Ann's second parrot?", "It is Martha's parrot.", told.record)
    story.flag("Pebble", told.message)
    verdict = verdict_from(scenarios.facts_of(story.otlp()))
    assert verdict.error_type == "distortion"
