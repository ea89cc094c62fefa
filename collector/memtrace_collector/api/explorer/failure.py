"""Everything about one failure: the verdict, the path of the information, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memtrace_collector.api.explorer.hops import Known, hops_json, key_of, refs_of
from memtrace_collector.api.explorer.retrieval import reads_of
from memtrace_collector.api.explorer.shown import Shown, of_failure
from memtrace_collector.api.explorer.view import Parameters, needed
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.attribution.explain import without_quotes
from memtrace_collector.attribution.verdict import MEMORY_STAGES
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Flag, Operation, OperationKey
from memtrace_collector.graph.questions.answers import answer_at, case_at
from memtrace_collector.graph.questions.operations import operation_at
from memtrace_collector.graph.questions.shapes import span_json, span_key, time_json
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.store.base import CaseStore
from memtrace_otel import semconv

MAX_REVISIONS = 50
_TOLD_APART = ("path", "evidence", "decisive", "also", "alternatives")
"""Parts of a verdict that the page gets in another form."""


@dataclass(frozen=True, slots=True)
class _Named:
    """Operations by their spans; of those that have gone, what the path says of them."""

    stored: Mapping[OperationKey, Operation]
    hops: Mapping[OperationKey | None, Json]

    def operation(self, key: OperationKey) -> Operation | None:
        if key in self.stored:
            return self.stored[key]
        hop = self.hops.get(key)
        if hop is None:
            return None
        return Operation(
            graph_id="",
            trace_id=key.trace_id,
            span_id=key.span_id,
            name=hop["operation"],
            step="",
            start_ns=hop["time_ns"],
            end_ns=hop["time_ns"],
            service=hop["service"],
            system=hop["system"],
        )

    def to_json(self, key: OperationKey | None) -> Json:
        found = self.operation(key) if key else None
        return {
            "span": span_json(key) if key else None,
            "is_stored": key in self.stored,
            "operation": found.name if found else "",
            "service": found.service if found else "",
            "system": found.system if found else "",
            "time": time_json(found.start_ns) if found else None,
        }


def failure(stores: Stores, parameters: Parameters) -> Json:
    """One failure by the parameter ``id`` (of its case), in one answer.

    Spans that the store no longer has leave what the verdict says of them.

    Raises:
        WrongUseError: no id is given.
        NotFoundError: there is no verdict with it.
    """
    name = needed(parameters, "id")
    verdict = stores.cases.verdict(name)
    if verdict is None:
        raise NotFoundError(
            f"there is no verdict of a case {name!r}: it waits to be judged, or was erased"
        )
    found: Mapping[str, Any] = verdict
    case = _case(stores.graphs, found)
    shown = of_failure(case, found)
    operations = _operations(stores.graphs, case, found)
    known = (
        Known(operations, reads_of(case), case.values, case.histories)
        if case
        else Known(operations)
    )
    hops = hops_json(found, known, shown)
    named = _Named(operations, {key_of(hop["span"]): hop for hop in hops})
    return {
        "verdict": {name: part for name, part in found.items() if name not in _TOLD_APART},
        "is_memory_fault": found["stage"] in MEMORY_STAGES,
        "headline": _headline(found, named),
        **_asked(case, found, shown),
        "path": hops,
        "decisive": [_loss_json(item, named, shown) for item in found["decisive"]],
        "also": [_loss_json(item, named, shown) for item in found["also"]],
        "alternatives": [
            item | {"decisive": [_loss_json(each, named, shown) for each in item["decisive"]]}
            for item in found["alternatives"]
        ],
        "claims": [_claim_json(claim, named, shown) for claim in found["evidence"]],
        "revisions": _revisions(stores.cases, found),
        "texts": shown.captured(refs_of(hops)),
    }


def answer(stores: Stores, parameters: Parameters) -> Json:
    """Where an answer is told about: ``{"answer", "failure"}``, the case of its verdict or None.

    The parameter ``answer`` is ``TRACE[:SPAN]``; what is not an answer means the one below it.

    Raises:
        WrongUseError: it is not written like that.
        NotFoundError: no answer is known there.
    """
    operation = answer_at(stores.graphs, needed(parameters, "answer"))
    name = case_id(operation)
    known = stores.cases.verdict(name) is not None
    return {"answer": str(operation.key), "failure": name if known else None}


def _case(reader: GraphReader, verdict: Mapping[str, Any]) -> Case | None:
    key = key_of(verdict["answer"])
    found = operation_at(reader, key) if key else None
    return case_at(reader, found) if found else None


def _operations(
    reader: GraphReader, case: Case | None, verdict: Mapping[str, Any]
) -> dict[OperationKey, Operation]:
    """Of the case, and those that the verdict names beyond it."""
    known = dict(case.operations) if case else {}
    missing = {key for key in _named(verdict) if key not in known}
    for key in missing:
        found = operation_at(reader, key)
        if found is not None:
            known[key] = found
    return known


def _named(verdict: Mapping[str, Any]) -> Iterable[OperationKey]:
    losses = [*verdict["decisive"], *verdict["also"]]
    losses += [each for item in verdict["alternatives"] for each in item["decisive"]]
    spans = [hop["span"] for hop in verdict.get("path") or ()]
    spans += [claim["span"] for claim in verdict["evidence"]]
    yield from filter(None, map(key_of, [*losses, *spans]))


def _headline(verdict: Mapping[str, Any], named: _Named) -> str:
    """One sentence that quotes nothing."""
    key = key_of(next(iter(verdict["decisive"]), None))
    return without_quotes(verdict, named.operation(key) if key else None)


def _asked(case: Case | None, verdict: Mapping[str, Any], shown: Shown) -> Json:
    """The question, the reply, and what the flag says of it."""
    if case is None:
        stub = {"span": verdict["answer"], "is_stored": False, "given": [], "time": None}
        unknown = {"service": "", "operation": "", "conversation": ""}
        return {"answer": stub | unknown, "question": [], "flag": None, "evidence": []}
    replied = case.answer
    given = [ref for ref in replied.outputs if ref.startswith(f"{semconv.KIND_ANSWER}:")]
    return {
        "answer": {
            "span": span_json(replied.key),
            "is_stored": True,
            "given": [shown.value(ref) for ref in given],
            "time": time_json(replied.start_ns),
            "service": replied.service,
            "operation": replied.name,
            "conversation": replied.conversation_id,
        },
        "question": [shown.value(ref) for ref in _queries(case)],
        "flag": _flag_json(case.flag, case.evidence_given) if case.flag.origin else None,
        "evidence": [_evidence_json(ref, case, shown) for ref in case.evidence],
    }


def _queries(case: Case) -> list[str]:
    """As asked and as rewritten, in order."""
    turn = sorted((case.operations[key] for key in case.turn if key in case.operations), key=_when)
    named = (ref for each in (*turn, case.answer) for ref in (*each.inputs, *each.outputs))
    return list(dict.fromkeys(ref for ref in named if ref.startswith(f"{semconv.KIND_QUERY}:")))


def _when(operation: Operation) -> tuple[int, OperationKey]:
    return operation.start_ns, operation.key


def _flag_json(flag: Flag, evidence_given: bool) -> Json:
    return {
        "expected": flag.expected,
        "reason": flag.reason,
        "source": flag.source,
        "time": time_json(flag.at_ns) if flag.at_ns else None,
        "evidence_given": evidence_given,
    }


def _evidence_json(ref: str, case: Case, shown: Shown) -> Json:
    takers = [each for each in case.operations.values() if ref in each.outputs]
    first = min(takers, key=_when, default=None)
    return shown.value(ref) | {
        "speaker": first.roles.get(ref, "") if first else "",
        "span": span_json(first.key) if first else None,
        "time": time_json(first.start_ns) if first else None,
        "graph_id": case.foreign.get(ref, case.answer.graph_id),
    }


def _loss_json(loss: Mapping[str, Any], named: _Named, shown: Shown) -> Json:
    change = shown.change(loss["last_right"], loss["first_wrong"])
    kind = {"stage": loss["stage"], "error_type": loss["error_type"]}
    return {**kind, **named.to_json(key_of(loss)), "change": change}


def _claim_json(claim: Mapping[str, Any], named: _Named, shown: Shown) -> Json:
    value = shown.value(claim["ref"]) if claim["ref"] else None
    return {"says": claim["says"], "value": value, **named.to_json(key_of(claim["span"]))}


def _revisions(cases: CaseStore, verdict: Mapping[str, Any]) -> list[Json]:
    """Newest first; ``says``: what changed against the one before."""
    found: list[Mapping[str, Any]] = [*cases.revisions(verdict["id"])]
    return [
        {
            "revision": each["revision"],
            "created": each["created"],
            "stage": each["stage"],
            "error_type": each["error_type"],
            "method": each["method"],
            "score": each["score"],
            "decisive": [span_json(span_key(loss)) for loss in each["decisive"]],
            "case_trace": each["case_trace"],
            "says": (each.get("supersedes") or {}).get("says", ""),
        }
        for each in reversed(found[-MAX_REVISIONS:])
    ]
