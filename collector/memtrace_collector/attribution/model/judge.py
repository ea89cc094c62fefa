"""`--method auto` and `--method model`: the rules, with a model for what they leave open."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.model.ask import Asker, Record
from memtrace_collector.attribution.model.budget import Budget
from memtrace_collector.attribution.model.collect import Collected, Key, is_enough
from memtrace_collector.attribution.model.similar_judge import Similar
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.graph.case import Case

AUTO, MODEL = "auto", "model"
MAX_ROUNDS = 4
"""Doubtful hops of one case that are asked about."""
WITH_MODEL = 0.9
"""A verdict that rests on a model's answers is this much less sure."""
_BEYOND_ANY_MODEL = frozenset(
    {"gap", "sampled", "cut", "no_content", "unseen_writer", "clock", "retention"}
)
"""What is missing here is missing for a model, too."""


class ModelJudge:
    """Judges a case by the rules and asks a model for the hops that they leave open.

    Args:
        asker: asks.
        case_budget: makes the budget of one case.
        method: ``auto`` asks where the rules abstain or are unsure; ``model`` wherever a text was
            open or a wording decided.
        cut: score under which the rules are unsure.
        similar: answers what similarity of texts can, before anybody is asked.
    """

    def __init__(
        self,
        asker: Asker,
        case_budget: Callable[[], Budget],
        method: str,
        cut: float,
        similar: Similar | None = None,
    ) -> None:
        self._asker, self._case_budget = asker, case_budget
        self._method, self._cut = method, cut
        self._similar = similar

    def __call__(self, case: Case) -> Verdict:
        """The verdict; where nobody could be asked, that of the rules, which says so."""
        answers = self._similar.answers(case) if self._similar else {}
        asked: set[Key] = set()
        record = Record(self._asker.model)
        budget = self._case_budget()
        collected = Collected(answers)
        verdict = attribute(case, judgements=collected)
        for _ in range(MAX_ROUNDS):
            if not self._is_worth_asking(verdict):
                break
            doubts = collected.first_doubts(leaning_too=self._asks_of_wording(verdict))
            if not doubts or record.stopped:
                break
            for doubt in doubts:
                asked.add(doubt.key)
                answers[doubt.key] = self._asker.answer(doubt, budget, record)
                if record.stopped or (answers[doubt.key] and is_enough(doubt)):
                    break
            collected = Collected(answers)
            verdict = attribute(case, judgements=collected)
        return _told(verdict, record, used=bool(collected.used & asked))

    def _is_worth_asking(self, verdict: Verdict) -> bool:
        if verdict.error_type == "insufficient_evidence":
            return not set(verdict.missing) & _BEYOND_ANY_MODEL
        return self._method == MODEL or verdict.score < self._cut

    def _asks_of_wording(self, verdict: Verdict) -> bool:
        """A no of the rules that rests on the wording is asked about when they are sure of nothing
        better; what structure alone shows is not."""
        return "text" in verdict.basis or verdict.error_type == "insufficient_evidence"


def _told(verdict: Verdict, record: Record, *, used: bool) -> Verdict:
    """A verdict with what was asked for it."""
    if record.stopped and not used:
        verdict = dataclasses.replace(verdict, explanation=_noted(verdict.explanation, record))
    if not record.count and not record.stopped:
        return verdict
    asked = dataclasses.replace(verdict, model=record.to_json())
    if not used:
        return asked
    return dataclasses.replace(
        asked,
        method=MODEL,
        basis=(*(each for each in verdict.basis if each != MODEL), MODEL),
        score=round(verdict.score * WITH_MODEL, 4),
    )


def _noted(explanation: str, record: Record) -> str:
    return f"{explanation} (By rules alone; the model was not asked further: {record.stopped}.)"[
        :600
    ]
