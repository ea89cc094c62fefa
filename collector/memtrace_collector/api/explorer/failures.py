"""What was found out about flagged answers, as a list with filters; and what was not yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from memtrace_collector.api.explorer.listing import (
    FACETS,
    Filters,
    filtered,
    is_memory_fault,
    page_after,
)
from memtrace_collector.api.explorer.view import Parameters
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.attribution.verdict import STAGES
from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph.questions.shapes import span_json, time_json
from memtrace_collector.store.base import CaseStore
from memtrace_collector.store.queue import SET_ASIDE, UNRESOLVED, WAITING, QueuedCase
from memtrace_collector.store.short_verdicts import MAX_LISTED, ShortVerdict

PAGE, MAX_PAGE = 50, 200
MAX_VALUES = 50
"""Values shown of a facet, those with the most verdicts."""
MAX_UNJUDGED = 50
_SEPARATOR = "~"
_YES_NO = {"": None, "yes": True, "no": False}


def failures(stores: Stores, parameters: Parameters) -> Json:
    """Current verdicts, newest first.

    Parameters: ``stage``, ``type``, ``graph``, ``system``, ``service`` (the last two of the
    decisive operation), ``method``, ``q`` (a text in the explanation, graph or ids),
    ``memory=yes`` (faults of memory only), ``human`` (yes, no), ``after`` (``next`` of the page
    before), ``limit``.

    Returns:
        ``failures``, ``total`` (that pass the filters), ``known`` (all), ``is_all`` (False: there
        are more than are looked at), ``facets`` (per filter the values with their counts),
        ``next`` (None: the last page), ``cases`` (how many by state), ``unjudged``.

    Raises:
        WrongUseError: a parameter is malformed.
    """
    listed = stores.cases.short_verdicts()
    found = filtered(listed, _filters(parameters))
    limit = _limit(parameters.get("limit", ""))
    page = page_after(found.verdicts, _place(parameters.get("after", "")), limit + 1)
    shown = page[:limit]
    return {
        "failures": [_failure_json(verdict) for verdict in shown],
        "total": len(found.verdicts),
        "known": len(listed),
        "is_all": len(listed) < MAX_LISTED,
        "facets": {name: _values_json(name, counts) for name, counts in found.counts.items()},
        "next": f"{shown[-1].created}{_SEPARATOR}{shown[-1].id}" if len(page) > limit else None,
        "cases": stores.cases.queue_counts(),
        "unjudged": _unjudged(stores.cases),
    }


def _filters(parameters: Parameters) -> Filters:
    return Filters(
        values={name: parameters[name] for name in FACETS if parameters.get(name)},
        text=parameters.get("q", "").strip(),
        memory_only=bool(_yes_or_no(parameters, "memory")),
        human=_yes_or_no(parameters, "human"),
    )


def _yes_or_no(parameters: Parameters, name: str) -> bool | None:
    given = parameters.get(name, "")
    if given not in _YES_NO:
        raise WrongUseError(f"the parameter {name} is yes, no or empty, not {given!r}")
    return _YES_NO[given]


def _limit(text: str) -> int:
    if not text:
        return PAGE
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= MAX_PAGE):
        raise WrongUseError(f"the parameter limit is a number from 1 to {MAX_PAGE}, not {text!r}")
    return int(text)


def _place(text: str) -> tuple[str, str]:
    created, separator, case_id = text.partition(_SEPARATOR)
    if text and not (created and separator and case_id):
        raise WrongUseError(f"the parameter after is the `next` of another page, not {text!r}")
    return created, case_id


def _failure_json(verdict: ShortVerdict) -> Json:
    return {
        "id": verdict.id,
        "revision": verdict.revision,
        "created": verdict.created,
        "graph_id": verdict.graph_id,
        "answer": span_json(verdict.answer_key),
        "stage": verdict.stage,
        "error_type": verdict.error_type,
        "is_memory_fault": is_memory_fault(verdict.stage),
        "method": verdict.method,
        "score": verdict.score,
        "explanation": verdict.explanation,
        "decisive": [span_json(key) for key in verdict.decisive_keys],
        "operation": verdict.operation,
        "service": verdict.service,
        "system": verdict.system,
        "case_trace": verdict.case_trace,
    }


def _values_json(facet: str, counts: Mapping[str, int]) -> list[Json]:
    """Stages in the order in which they are tested, else the most frequent first."""
    values = [(value, count) for value, count in Counter(counts).most_common() if value]
    if facet == "stage":
        values.sort(key=lambda item: list(STAGES).index(item[0]) if item[0] in STAGES else -1)
    return [{"value": value, "count": count} for value, count in values[:MAX_VALUES]]


def _unjudged(cases: CaseStore) -> list[Json]:
    """What failed too often, what is waited for, and flags whose answer has not arrived."""
    aside = [
        _case_json(item.case, SET_ASIDE) | {"reason": item.reason, "attempts": item.attempts}
        for item in cases.set_aside(limit=MAX_UNJUDGED)
    ]
    waiting = [_case_json(case, WAITING) for case in cases.waiting(MAX_UNJUDGED)]
    unresolved = [_case_json(case, UNRESOLVED) for case in cases.unresolved(limit=MAX_UNJUDGED)]
    return [*aside, *waiting, *unresolved][:MAX_UNJUDGED]


def _case_json(case: QueuedCase, state: str) -> Json:
    named = (case.response_id, case.conversation_id)
    return {
        "id": case.case_id,
        "state": state,
        "graph_id": case.graph_id,
        "answer": {"traceId": case.trace_id, "spanId": case.span_id},
        "answered": time_json(case.answered_ns) if case.answered_ns else None,
        "named": next(filter(None, named), ""),
        "reason": "",
        "attempts": 0,
    }
