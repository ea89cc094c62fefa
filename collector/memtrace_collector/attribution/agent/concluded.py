"""From the ending of an exploration to the verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memtrace_collector.attribution.agent.ending import Abstain, NameOperation, absence
from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.carrying.binding import seek
from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.needs import Item, classify
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.explain import named as in_words
from memtrace_collector.attribution.findings import Finding
from memtrace_collector.attribution.model import hostile
from memtrace_collector.attribution.path import path
from memtrace_collector.attribution.verdict import Claim, Decisive, Hop, Verdict
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.references import named_by

AGENT = "agent"
MAX_EXPLANATION = 900
SCORE = 0.5
"""Of every operation that an agent names: how often it is right is not measured for a model of the
user's choice, and it says nothing useful about its own certainty."""


def named(case: Case, ending: NameOperation, told: Mapping[str, Any]) -> Verdict:
    """The verdict that names an operation which nothing speaks against."""
    operation = case.operations[ending.key]
    reason = hostile.clean(ending.reason, len(ending.reason))
    return Verdict(
        graph_id=case.answer.graph_id,
        answer=case.answer.key,
        error_type=ending.error_type,
        explanation=f"A model that explored the case names {in_words(operation)}: {reason}",
        decisive=(Decisive(operation=ending.key, error_type=ending.error_type),),
        score=SCORE,
        basis=("model",),
        method=AGENT,
        evidence=tuple(_claim(case, ref) for ref in dict.fromkeys(ending.evidence)),
        lineage=case.lineage,
        absence=absence(case),
        path=_path(case, ending),
        model=told,
    )


def abstained(case: Case, ending: Abstain, told: Mapping[str, Any]) -> Verdict:
    """The verdict that names none."""
    reason = hostile.clean(ending.reason, len(ending.reason))
    return Verdict(
        graph_id=case.answer.graph_id,
        answer=case.answer.key,
        error_type="insufficient_evidence",
        explanation=f"A model that explored the case names no operation: {reason}",
        score=0.0,
        basis=("model",),
        method=AGENT,
        lineage=case.lineage,
        absence=absence(case),
        missing=tuple(dict.fromkeys(ending.missing)),
        model=told,
    )


def by_rules(case: Case, told: Mapping[str, Any]) -> Verdict:
    """The verdict of the rules, with why the model could not be asked."""
    verdict = attribute(case)
    noted = f"{verdict.explanation} (By rules alone; the agent stopped: {told['stopped']}.)"
    return replace(verdict, explanation=noted[:MAX_EXPLANATION], model=told)


def _claim(case: Case, ref: str) -> Claim:
    """Evidence that the model named points at whoever produced it, else first met it."""
    items = sorted(case.operations.values(), key=lambda item: (item.composite, item.start_ns))
    made = (item for item in items if ref in item.outputs)
    met = (item for item in items if ref in named_by(item))
    span = next(made, None) or next(met, None)
    return Claim(ref=ref, says="named by the model as evidence", span=span.key if span else None)


def _path(case: Case, ending: NameOperation) -> tuple[Hop, ...]:
    """The way of the needed information as the rules see it, with the loss where it was named."""
    view = View(case)
    need = classify(view.question or "", case.flag.expected, view.asked_on)
    known = seek(view, need) if need.kind not in ("unknown", "unanswerable") else []
    nothing = Sought(view, need, Item("", frozenset({"\0"})), (), frozenset())
    finding = Finding(error_type=ending.error_type, decisive=(ending.key,), basis=("model",))
    return path([(sought, finding) for sought in known or [nothing]])
