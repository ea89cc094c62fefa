"""What the turn and the lives of values show when nobody said what was right."""

from __future__ import annotations

import pytest
from msgspec import structs

from memtrace_collector.attribution.verdict import STAGE_OF, Verdict
from tests.contract.held_out.registry import SCENARIOS
from tests.contract.test_scenarios import NAMES, told_facts, verdict_from
from tests.memtrace_collector.attribution.unlabelled.test_without_expected import unsaid

SHOWN_BY_STRUCTURE = {
    "not_searched": 0.9,
    "wrong_scope": 0.5,
    "stale_retrieved": 0.5,
    "wrongly_deleted": 0.5,
}
"""Share of the scenarios of a type whose fault shows although nobody said what was right."""


def _without_expected(name: str) -> Verdict:
    return verdict_from(unsaid(told_facts(name)[0]))


@pytest.mark.parametrize("error_type", SHOWN_BY_STRUCTURE)
def test_a_fault_that_structure_shows_needs_no_expected_answer(error_type: str) -> None:
    names = [name for name in NAMES if told_facts(name)[1].types == (error_type,)]
    found = [name for name in names if _without_expected(name).error_type == error_type]
    assert names
    assert len(found) >= SHOWN_BY_STRUCTURE[error_type] * len(names), sorted({*names} - {*found})


def test_a_message_in_another_graph_is_found_by_its_conversation() -> None:
    facts, expected = told_facts("told_under_another_account")
    assert "wrong_graph" in expected.types
    verdict = verdict_from(facts, evidence_given=False)
    assert verdict.error_type == "wrong_graph", SCENARIOS["told_under_another_account"].why


def test_what_was_searched_for_and_not_found_is_less_sure_than_what_was_named() -> None:
    facts, _ = told_facts("never_said")
    searched = verdict_from(facts, evidence_given=False)
    assert searched.error_type == "never_told"
    assert searched.score < 0.5


def test_without_contents_a_batch_that_says_not_what_it_made_of_which_is_left_open() -> None:
    for name in NAMES[::5]:
        facts, expected = told_facts(name)
        unread = [
            structs.replace(
                each,
                values=(),
                operation=each.operation and structs.replace(each.operation, edges=()),
            )
            for each in facts
        ]
        verdict = verdict_from(unread)
        if verdict.error_type == "omission":
            stages = {STAGE_OF[kind] for kind in expected.types}
            assert verdict.stage in stages, (name, verdict.explanation)
