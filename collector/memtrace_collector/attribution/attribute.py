"""From a loaded case to its verdict: needed items, the table, one argument. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memtrace_collector.attribution.carrying.binding import seek
from memtrace_collector.attribution.carrying.carriers import Sought
from memtrace_collector.attribution.carrying.judgements import NO_JUDGEMENTS, Judgements
from memtrace_collector.attribution.carrying.needs import Item, Need, classify, states
from memtrace_collector.attribution.carrying.view import View
from memtrace_collector.attribution.explain import explain
from memtrace_collector.attribution.findings import Finding
from memtrace_collector.attribution.path import path
from memtrace_collector.attribution.rules.sanity import bad_judge, failed_call
from memtrace_collector.attribution.rules.table import judged, walk
from memtrace_collector.attribution.rules.told import evidence_is_unseen, part_not_heard
from memtrace_collector.attribution.unlabelled import without_expected
from memtrace_collector.attribution.unlabelled.derived import has_texts
from memtrace_collector.attribution.verdict import Alternative, Claim, Decisive, Verdict
from memtrace_collector.graph.case import Case

MAX_ALTERNATIVES = 3
_LINEAGE_WEIGHT = {"complete": 1.0, "inexact": 0.95, "ambiguous": 0.85, "incomplete": 0.5}
_ABSENCE_WEIGHT = {"proven": 1.0, "assumed": 0.97, "broken": 0.5}
_ABSENCE_RANK = {"proven": 0, "assumed": 1, "broken": 2}
_WITHOUT_EVIDENCE = 0.9
_WITHOUT_EXPECTED = 0.6


class _Outcome(NamedTuple):
    """One item's finding with what it rests on."""

    sought: Sought
    finding: Finding
    absence: str
    others: list[Finding]


def attribute(
    case: Case, *, method: str = "rules", judgements: Judgements = NO_JUDGEMENTS
) -> Verdict:
    """Which operation broke this answer.

    Args:
        case: a loaded case; nothing outside it is looked at.
        method: written into the verdict.
        judgements: who is asked what the texts leave open; by default nobody.
    """
    view = View(case, judgements)
    need = classify(view.question or "", case.flag.expected, view.asked_on)
    right = failed_call(view, need)
    if right is None and need.kind == "unknown" and _is_unsaid(view):
        return _without_expected(view, need, method)
    right = right or bad_judge(view, need)
    if right is not None:
        blank = Sought(view, need, Item("", frozenset()), (), frozenset(), by_descent=True)
        return _verdict(view, need, [_Outcome(blank, right, "proven", [])], method, 1.0)
    items = _open_items(view, need)
    unheard = part_not_heard(view)
    if unheard is not None:
        told = _Outcome(items[0], *judged(items[0], unheard), [])
        return _verdict(view, need, [told], method, 1.0)
    outcomes = _choose([_Outcome(sought, *walk(sought)) for sought in items])
    other = _without_evidence(view, need, outcomes)
    if other is not None:
        return _verdict(view, need, [other], method, _WITHOUT_EXPECTED)
    return _verdict(view, need, outcomes, method, 1.0)


def _without_evidence(view: View, need: Need, outcomes: Sequence[_Outcome]) -> _Outcome | None:
    """What structure shows where no message was found that says what was expected."""
    open_or_untold = ("never_told", "insufficient_evidence")
    if (
        view.case.evidence_given
        or need.kind == "unanswerable"
        or any(o.finding.error_type not in open_or_untold or o.sought.sources for o in outcomes)
    ):
        return None
    finding = without_expected.by_structure(view, need)
    if finding is None:
        return None
    return _Outcome(outcomes[0].sought, *judged(outcomes[0].sought, finding), [])


def _is_unsaid(view: View) -> bool:
    """Whether what was right must be derived: nobody said it, and there is something to read."""
    return has_texts(view) or not view.case.evidence_given


def _without_expected(view: View, need: Need, method: str) -> Verdict:
    """Nobody said what was right: judged by what memory was told."""
    sought, finding = without_expected.read(view, need)
    outcome = _Outcome(sought, *judged(sought, finding), [])
    return _verdict(view, need, [outcome], method, _WITHOUT_EXPECTED)


def _open_items(view: View, need: Need) -> list[Sought]:
    """The items that the reply does not give; all of them when none can be told apart."""
    sought = seek(view, need) if need.kind != "unanswerable" else [_nothing(view, need)]
    reply = view.reply
    if reply is None or len(sought) < 2:
        return sought
    lacking = [each for each in sought if states(each.item, reply) is not True]
    return lacking or sought


def _nothing(view: View, need: Need) -> Sought:
    """What an unanswerable question seeks: no value carries it."""
    return Sought(view, need, Item("", frozenset({"\0"})), (), frozenset())


def _choose(outcomes: Sequence[_Outcome]) -> list[_Outcome]:
    """Of several items' findings those that count, in causal order.

    A fault that can be shown counts over one that cannot; what was never told does not make
    the rest of a list wrong, unless the named evidence is what was not told. What a reply makes
    of a prompt counts only where that had all.
    """
    unheard = [o for o in outcomes if o.finding.error_type == "never_told"]
    if len(outcomes) == 1 or (unheard and evidence_is_unseen(outcomes[0].sought.view)):
        return (unheard or list(outcomes))[:1]
    shown = [
        o for o in outcomes if o.finding.error_type not in ("never_told", "insufficient_evidence")
    ]
    if not shown:
        unknown = [o for o in outcomes if o.finding.error_type == "insufficient_evidence"]
        return (unknown or list(outcomes))[:1]
    lost = [o for o in shown if o.finding.stage != "response"]
    shown = lost or shown
    operations = shown[0].sought.view.case.operations

    def when(outcome: _Outcome) -> int:
        keys = [key for key in outcome.finding.decisive if key in operations]
        return operations[keys[0]].start_ns if keys else 0

    return sorted(shown, key=when)


def _verdict(
    view: View, need: Need, outcomes: Sequence[_Outcome], method: str, weight: float
) -> Verdict:
    first = outcomes[0]
    finding = first.finding
    absence = max((o.absence for o in outcomes), key=_ABSENCE_RANK.__getitem__)
    decisive = _distinct([each for o in outcomes for each in o.finding.operations()])
    score = _score(view, finding, absence, weight)
    return Verdict(
        graph_id=view.answer.graph_id,
        answer=view.answer.key,
        error_type=finding.error_type,
        explanation=explain(view, need, finding, [o.finding for o in outcomes[1:]]),
        decisive=decisive,
        also=_distinct([each for o in outcomes for each in o.finding.also], without=decisive),
        aspect=finding.aspect,
        mechanism=finding.mechanism,
        score=score,
        basis=finding.basis,
        method=method,
        evidence=_claims(outcomes),
        alternatives=_alternatives(first, score),
        lineage=view.case.lineage,
        absence=absence,
        missing=tuple(dict.fromkeys(entry for o in outcomes for entry in o.finding.missing)),
        path=path([(o.sought, o.finding) for o in outcomes]),
    )


def _score(view: View, finding: Finding, absence: str, weight: float) -> float:
    if finding.error_type == "insufficient_evidence":
        return 0.0
    weight *= _LINEAGE_WEIGHT.get(view.case.lineage, 0.8) * _ABSENCE_WEIGHT[absence]
    if not view.case.evidence_given and finding.stage != "not_memory":
        weight *= _WITHOUT_EVIDENCE
    return round(min(0.99, finding.score * weight), 4)


def _distinct(items: Sequence[Decisive], without: Sequence[Decisive] = ()) -> tuple[Decisive, ...]:
    taken = {(each.operation, each.error_type) for each in without}
    found: dict[tuple[object, str], Decisive] = {}
    for each in items:
        key = (each.operation, each.error_type)
        if key not in taken:
            found.setdefault(key, each)
    return tuple(found.values())


def _claims(outcomes: Sequence[_Outcome]) -> tuple[Claim, ...]:
    """Claims that point at a span; a claim about a value points at whoever produced it."""
    found = [_pointed(o.sought.view, each) for o in outcomes for each in o.finding.claims]
    return tuple(dict.fromkeys(each for each in found if each.span is not None))


def _pointed(view: View, each: Claim) -> Claim:
    if each.span is not None or each.ref is None:
        return each
    known = view.producers(each.ref) or view.readers(each.ref)
    return Claim(ref=each.ref, says=each.says, span=known[0].key if known else None)


def _alternatives(outcome: _Outcome, score: float) -> tuple[Alternative, ...]:
    left = max(0.0, 1 - score)
    return tuple(
        Alternative(
            error_type=other.error_type,
            decisive=other.operations(),
            score=round(left * other.score / 2, 4),
        )
        for other in outcome.others[:MAX_ALTERNATIVES]
    )
