"""A flag that does not say what was right: judged by what memory was told."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pytest
from msgspec import structs

from memtrace_collector.attribution.verdict import STAGE_OF, Verdict
from memtrace_collector.graph.facts import SpanFacts
from tests.contract.held_out.registry import SCENARIOS
from tests.contract.test_scenarios import NAMES, told_facts, verdict_from

UNKNOWN = "insufficient_evidence"


def unsaid(facts: Iterable[SpanFacts]) -> list[SpanFacts]:
    """The same spans with flags that only say: this was wrong."""
    return [
        structs.replace(
            each,
            flags=tuple(structs.replace(flag, expected=None, evidence=()) for flag in each.flags),
        )
        for each in facts
    ]


@cache
def verdict_of(name: str) -> Verdict:
    return verdict_from(unsaid(told_facts(name)[0]))


def test_most_scenarios_keep_their_stage_without_their_expected_answer() -> None:
    wanted = {name: {STAGE_OF[kind] for kind in told_facts(name)[1].types} for name in NAMES}
    judged = [name for name in NAMES if verdict_of(name).error_type != UNKNOWN]
    right = [name for name in judged if verdict_of(name).stage in wanted[name]]
    assert len(judged) >= 0.6 * len(NAMES)
    assert len(right) >= 0.65 * len(judged)


@pytest.mark.parametrize("name", NAMES)
def test_verdict_without_an_expected_answer_says_so_in_its_score(name: str) -> None:
    verdict = verdict_of(name)
    a_failed_call_is_a_fact = verdict.error_type == "unrelated"
    assert verdict.score <= 0.6 or a_failed_call_is_a_fact, SCENARIOS[name].why
