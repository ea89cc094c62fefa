"""What a person may say of a verdict: the types of errors, and the operations of its case."""

from __future__ import annotations

from collections.abc import Iterable

from memtrace_collector.api.explorer.view import Parameters, needed
from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.attribution.judging.meanings import STAGE_MEANINGS, TYPE_MEANINGS
from memtrace_collector.attribution.judging.said import (
    MAX_NAME_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    MAYBE_WITHOUT_OPERATION,
    WITHOUT_OPERATION,
)
from memtrace_collector.attribution.verdict import STAGES
from memtrace_collector.errors import NotFoundError
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import Operation, OperationKey, by_time
from memtrace_collector.graph.questions.answers import case_of
from memtrace_collector.graph.questions.shapes import span_json, span_key, time_json
from memtrace_otel import semconv

MAX_OPERATIONS = 300
NONE, MAYBE, SOME = "none", "maybe", "some"


def judging(stores: Stores, parameters: Parameters) -> Json:
    """Of a case by the parameter ``id``: ``{"stages": [{"stage", "means", "types":
    [{"type", "means", "decisive": "none", "maybe" or "some"}]}], "operations": [those that may be
    decisive, in their order: "span", "name", "step", "service", "system", "time", "is_on_path"],
    "left_out", "max_note", "max_name"}``.

    Of more than :data:`MAX_OPERATIONS`, those of the path and the latest are given.

    Raises:
        WrongUseError: no id is given.
        NotFoundError: there is no verdict with it, or its answer is no longer stored.
    """
    name = needed(parameters, "id")
    verdict = stores.cases.verdict(name)
    if verdict is None:
        raise NotFoundError(f"there is no verdict of a case {name!r}")
    found: Json = verdict
    answer = found["answer"]
    case = case_of(stores.graphs, f"{answer['traceId']}:{answer['spanId']}")
    spans = [hop["span"] for hop in found.get("path") or () if hop["span"]]
    on_path = {span_key(each) for each in spans}
    possible = _possible(case)
    shown = _bounded(possible, on_path)
    return {
        "stages": [_stage_json(stage, types) for stage, types in STAGES.items()],
        "operations": [_operation_json(each, each.key in on_path) for each in shown],
        "left_out": len(possible) - len(shown),
        "max_note": MAX_NOTE_CHARACTERS,
        "max_name": MAX_NAME_CHARACTERS,
    }


def _possible(case: Case) -> list[Operation]:
    """In the order in which they ran. What is made of stages is not decisive: a stage is."""
    parents = {(each.trace_id, each.parent_span_id) for each in case.operations.values()}
    return sorted(
        (
            each
            for each in case.operations.values()
            if each.step != semconv.STEP_FLAG and not (each.composite and each.key in parents)
        ),
        key=by_time,
    )


def _bounded(possible: list[Operation], on_path: set[OperationKey]) -> list[Operation]:
    if len(possible) <= MAX_OPERATIONS:
        return possible
    others = [each for each in possible if each.key not in on_path]
    room = max(0, MAX_OPERATIONS - (len(possible) - len(others)))
    kept = on_path | {each.key for each in others[len(others) - room :]}
    return [each for each in possible if each.key in kept]


def _stage_json(stage: str, types: Iterable[str]) -> Json:
    return {
        "stage": stage,
        "means": STAGE_MEANINGS[stage],
        "types": [
            {"type": each, "means": TYPE_MEANINGS[each], "decisive": _decisive(each)}
            for each in types
        ],
    }


def _decisive(error_type: str) -> str:
    if error_type in WITHOUT_OPERATION:
        return NONE
    return MAYBE if error_type in MAYBE_WITHOUT_OPERATION else SOME


def _operation_json(operation: Operation, is_on_path: bool) -> Json:
    return {
        "span": span_json(operation.key),
        "name": operation.name,
        "step": operation.step,
        "service": operation.service,
        "system": operation.system,
        "time": time_json(operation.start_ns),
        "is_on_path": is_on_path,
    }
