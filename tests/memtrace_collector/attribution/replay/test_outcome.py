"""The rule that reads two arms, and what a replay changes about a verdict."""

from __future__ import annotations

from typing import Any

import pytest

from memtrace_collector.attribution.replay import outcome
from memtrace_collector.attribution.replay.outcome import Arm, Replay
from tests.memtrace_collector.attribution.replay import cases


@pytest.mark.parametrize(
    ("repaired", "control", "result"),
    [
        (Arm(3, 0), Arm(0, 3), "confirmed"),
        (Arm(2, 1), Arm(0, 3), "confirmed"),
        (Arm(3, 0), Arm(1, 2), "confirmed"),
        (Arm(2, 1), Arm(1, 2), "not_deterministic"),
        (Arm(3, 0), Arm(2, 1), "not_reproduced"),
        (Arm(3, 0), Arm(3, 0), "not_reproduced"),
        (Arm(0, 3), Arm(0, 3), "refuted"),
        (Arm(1, 2), Arm(0, 3), "refuted"),
        (Arm(0, 3), Arm(1, 2), "not_deterministic"),
        (Arm(0, 0, 3), Arm(0, 3), "inconclusive"),
        (Arm(1, 0), Arm(0, 1), "confirmed"),
        (Arm(0, 1), Arm(0, 1), "refuted"),
    ],
)
def test_a_repair_counts_only_where_the_unrepaired_prompt_does_clearly_worse(
    repaired: Arm, control: Arm, result: str
) -> None:
    assert outcome.read_arms(repaired, control)[0] == result


def test_a_repair_whose_place_was_assumed_refutes_nothing() -> None:
    assert outcome.read_arms(Arm(0, 3), Arm(0, 3), place_assumed=True)[0] == "inconclusive"


@pytest.mark.parametrize(
    ("control", "result"),
    [
        (Arm(0, 3), "reproduced"),
        (Arm(1, 2), "not_deterministic"),
        (Arm(3, 0), "not_deterministic"),
        (Arm(0, 2, 1), "inconclusive"),
    ],
)
def test_the_same_prompt_again_shows_whether_the_reply_was_an_accident(
    control: Arm, result: str
) -> None:
    assert outcome.read_again(control)[0] == result


def test_flips_are_the_runs_that_disagree_with_the_most_of_their_arm() -> None:
    assert (Arm(3, 0).flips, Arm(2, 1).flips, Arm(1, 1, 1).flips, Arm().flips) == (0, 1, 2, 0)


def _finding() -> dict[str, Any]:
    return cases.attribute(cases.vector("overwritten")).to_json()


@pytest.mark.parametrize("result", outcome.RESULTS)
@pytest.mark.parametrize("assumed", [(), ("retrieval",)])
def test_a_replay_can_be_taken_out_of_a_verdict_again(result: str, assumed: tuple[str]) -> None:
    finding = _finding()
    replay = Replay(result=result, reason="right in 3 of 3", assumed=assumed, repaired=Arm(3))
    replayed = outcome.with_replay(finding, replay)
    assert outcome.without_replay(replayed) == finding
    assert outcome.with_replay(replayed, replay) == replayed


def test_a_confirmation_raises_and_a_refutation_lowers_the_score_less_so_when_assuming() -> None:
    finding = _finding()

    def score(result: str, *assumed: str) -> float:
        replay = Replay(result=result, reason="r", assumed=assumed)
        return float(outcome.with_replay(finding, replay)["score"])

    scores = [
        score("refuted"),
        score("refuted", "retrieval"),
        float(finding["score"]),
        score("confirmed", "retrieval"),
        score("confirmed"),
    ]
    assert scores == sorted(set(scores))
    assert scores[-1] < 1


def test_only_a_confirmation_stands_in_the_basis() -> None:
    finding = _finding()
    for result in outcome.RESULTS:
        told = outcome.with_replay(finding, Replay(result=result, reason="r"))
        assert ("replay" in told["basis"]) == (result == "confirmed")
        assert ("replay" in told["explanation"]) == (result in ("confirmed", "refuted"))


def test_a_replay_that_asked_nobody_is_no_news_after_one_that_did() -> None:
    asked = Replay(result="confirmed", reason="r", repaired=Arm(3)).to_json()
    unasked = Replay(result="partly", reason="r").to_json()
    assert not outcome.is_news(asked, unasked)
    assert not outcome.is_news(asked, None)
    assert outcome.is_news(unasked, asked)
    assert outcome.is_news(None, unasked)
