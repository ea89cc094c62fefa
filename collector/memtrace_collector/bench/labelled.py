"""Cases that persons judged, as exported: their labels against what the rules find now.

Measured as planted faults are (:mod:`memtrace_collector.bench.score`); a case of which a person
said that it cannot be told is counted, and in no share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.bench import report
from memtrace_collector.bench.judging import judgement_of
from memtrace_collector.bench.labels import Label, labels
from memtrace_collector.bench.score import Named, Row, Truth, mark
from memtrace_collector.bench.variants import FOUND, GIVEN
from memtrace_collector.dialects import registry
from memtrace_collector.errors import DamagedError
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.facts import DEFAULT_TENANT, OperationKey
from memtrace_collector.graph.flags import flagged_answers
from memtrace_collector.graph.loader import load_case
from memtrace_collector.receiver.decode import InvalidRequestError, decode
from memtrace_collector.store.in_memory import InMemoryFactStore

Json = dict[str, Any]
SOURCE = "judged"
UNDECIDED = "unknown"


class Labelled(NamedTuple):
    """What a file of judged cases gave."""

    rows: tuple[Row, ...]
    undecided: int
    """Labels that say that it cannot be told."""
    problems: tuple[str, ...]
    """Labels whose answer, or operation, is not in the file."""


def is_export(document: Mapping[str, Any]) -> bool:
    """Whether a JSON document is a request of spans, as an exported case is."""
    return "resourceSpans" in document


def read(path: Path, *, evidence: bool = True) -> Labelled:
    """Attribute the labelled answers of an exported case, in an empty store, by rules.

    Args:
        evidence: whether the evidence that flags name is given, or searched for.

    Raises:
        DamagedError: the file is no OTLP/JSON request of spans.
    """
    try:
        request: ExportTraceServiceRequest = decode("traces", "json", path.read_bytes())
    except (OSError, InvalidRequestError) as error:
        raise DamagedError(f"{path} is no exported case: {error}") from None
    store = InMemoryFactStore.of(registry.read_request(DEFAULT_TENANT, request))
    flagged = {each.answer.key: each for each in flagged_answers(store)}
    rows, problems, undecided = [], [], 0
    for each in labels(request):
        if STAGE_OF[each.error_type] == UNDECIDED:
            undecided += 1
            continue
        found = flagged.get(each.answer)
        if found is None:
            problems.append(f"{path}: the judged answer {each.answer} is not in it as flagged")
            continue
        case = load_case(store, found.answer, found.flag, evidence_given=evidence)
        missing = [key for key in each.decisive if key not in case.operations]
        problems += [f"{path}: the decisive operation {key} is not in it" for key in missing]
        rows.append(_row(each, case, evidence))
    return Labelled(tuple(rows), undecided, tuple(problems))


def summary(rows: Sequence[Row], undecided: int = 0) -> Json:
    """Every measure of all cases, what was taken for what, and the cases one by one."""
    return {
        "cases": len(rows),
        "undecided": undecided,
        **report.measures(rows),
        "confusion": {
            "stage": report.confusion(rows, lambda kind: STAGE_OF[kind]),
            "type": report.confusion(rows, str),
        },
        "by_case": [_case_json(row) for row in rows],
    }


def _row(said: Label, case: Case, evidence: bool) -> Row:
    decisive = tuple(_named(said.error_type, key, case) for key in said.decisive)
    truth = Truth(decisive=decisive or (Named(said.error_type),))
    judgement = judgement_of(attribute(case), case)
    return Row(
        case=said.case_id,
        system=_system(case),
        dialogue=case.answer.graph_id,
        source=SOURCE,
        category="",
        kinds=(said.error_type,),
        held_out=False,
        variant=(GIVEN if evidence else FOUND).name,
        truth=truth,
        judgement=judgement,
        marks=mark(truth, judgement),
    )


def _named(error_type: str, key: OperationKey, case: Case) -> Named:
    operation = case.operations.get(key)
    return Named(error_type, *key, operation.step if operation else "")


def _system(case: Case) -> str:
    return next((op.system for op in case.operations.values() if op.system), "")


def _case_json(row: Row) -> Json:
    return {
        "case": row.case,
        "graph_id": row.dialogue,
        "judged": row.truth.error_type,
        "judged_operations": [f"{each.trace_id}:{each.span_id}" for each in _at(row.truth)],
        "found": row.judgement.error_type,
        "found_operations": [f"{each.trace_id}:{each.span_id}" for each in row.judgement.decisive],
        "score": round(row.judgement.score, 4),
        "operation": row.marks.operation,
        "stage": row.marks.stage,
        "type": row.marks.exact_type,
    }


def _at(truth: Truth) -> list[Named]:
    return [each for each in truth.decisive if each.operation]
