"""What exploring tells of a verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memtrace_collector.api.exploring import Stores, explore
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.replay.outcome import Replay
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph import flags
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore
from tests.contract import scenarios

SECRET = "the vault opens with 4711"


class Verdicts:
    """As much of a case store as exploring one verdict reads."""

    def __init__(self, **by_case: dict[str, Any]) -> None:
        self._by_case = by_case

    def verdict(self, case_id: str) -> dict[str, Any] | None:
        return self._by_case.get(case_id)


def judged() -> tuple[InMemoryFactStore, str, dict[str, Any]]:
    store = InMemoryFactStore.of(scenarios.facts("overwritten"))
    (flagged,) = flags.flagged_answers(store)
    verdict = attribute(load_case(store, flagged.answer, flagged.flag)).to_json()
    return store, case_id(flagged.answer), verdict


@pytest.mark.parametrize("chars", [0, 2_000])
def test_what_a_model_saw_and_said_stays_out_of_a_verdict(chars: int) -> None:
    store, case, verdict = judged()
    verdict["model"] = {
        "model": "m", "calls": 1, "tokens": {}, "cost": 0.0, "stopped": None,
        "asked": [{"prompt": SECRET, "reply": SECRET}],
    }  # fmt: skip
    replayed = Replay(result="confirmed", reason="the reply changed").to_json()
    verdict["replay"] = replayed | {"control": {"replies": [SECRET]}}
    stores = Stores(store, Verdicts(**{case: verdict}))
    told = explore(stores, "verdict", {"answer": verdict["answer"]["traceId"]}, chars)
    assert SECRET not in json.dumps(told)
    assert (told["model"]["calls"], told["replay"]["result"]) == (1, "confirmed")
    assert ("Lisbon" in json.dumps(told)) is bool(chars)


def test_a_judged_answer_without_verdict_says_how_to_get_one() -> None:
    store, _, verdict = judged()
    with pytest.raises(NotFoundError, match="memtrace-otel attribute"):
        explore(Stores(store, Verdicts()), "verdict", {"answer": verdict["answer"]["traceId"]})
