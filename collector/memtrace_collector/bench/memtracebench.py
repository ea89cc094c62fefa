"""MemTraceBench files and smartcomment exports: their labels against our verdicts.

The two measures are MemTrace's own: **ETA**, the share of annotations whose
``final_error_type`` is named exactly, and **OIA**, the share whose ``final_op_id`` is the
decisive operation. An annotation without verdict (its answer is not in the file) and an
abstention count as wrong. With several decisive operations the first is compared, because the
benchmark knows one per case.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.attribution.attribute import attribute
from memtrace_collector.attribution.verdict import Verdict
from memtrace_collector.bench.score import LABEL_OF, LABELS
from memtrace_collector.bench.statistics import share
from memtrace_collector.dialects import attributes, registry, smartcomment
from memtrace_collector.dialects.smartcomment import GOLD_ERROR_TYPE, GOLD_SPAN_ID
from memtrace_collector.errors import DamagedError
from memtrace_collector.graph.facts import DEFAULT_TENANT
from memtrace_collector.graph.flags import Flagged, flagged_answers
from memtrace_collector.graph.loader import load_case
from memtrace_collector.store.in_memory import InMemoryFactStore

SPLITS = ("rag", "mem0", "evermemos", "long_context")
NON_MEMORY = ("AnnotationError", "LLMAsAJudgeError")
"""What the benchmark's own loader leaves out, unless told otherwise."""
_SYSTEMS = {
    "longcontext": "long_context",
    "naiverag": "rag",
    "rag": "rag",
    "mem0": "mem0",
    "evermemos": "evermemos",
}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One annotation beside what was found for it."""

    file: str
    split: str
    source: str
    """locomo, longmemeval, realmem or whatever the file names."""
    expected: str
    gold_type: str
    gold_span: str
    """The span that the importer makes of ``final_op_id``."""
    verdict_type: str
    """Ours; empty: there is no verdict."""
    verdict_label: str
    verdict_span: str
    score: float
    explanation: str

    @property
    def type_right(self) -> bool:
        return bool(self.verdict_label) and self.verdict_label == self.gold_type

    @property
    def operation_right(self) -> bool:
        return bool(self.gold_span) and self.verdict_span == self.gold_span


@dataclass(frozen=True, slots=True)
class _Gold:
    error_type: str
    span_id: str


def read(path: Path, *, evidence: bool = True, keep_non_memory: bool = False) -> list[Scored]:
    """Attribute every annotation of one export.

    Args:
        evidence: whether the annotated source evidence is given, or searched for.
        keep_non_memory: also those that the benchmark labels as no fault of memory.

    Raises:
        DamagedError: the file is no such export.
    """
    document = read_document(path)
    try:
        request = smartcomment.to_request(document)
    except smartcomment.NotSmartcommentError as error:
        raise DamagedError(f"{path} is no smartcomment export: {error}") from None
    golds = _golds(request)
    store = InMemoryFactStore.of(registry.read_request(DEFAULT_TENANT, request))
    found = {each.flag.origin: each for each in flagged_answers(store)}
    split, source = split_of(path, document), source_of(document)
    scored = []
    for origin, gold in golds.items():
        if gold.error_type in NON_MEMORY and not keep_non_memory:
            continue
        flagged = found.get(origin)
        verdict = _verdict(store, flagged, evidence) if flagged else None
        expected = (flagged.flag.expected or "") if flagged else ""
        scored.append(_scored(path, split, source, expected, gold, verdict))
    return scored


def summary(scored: Iterable[Scored]) -> Json:
    """ETA and OIA of all, by split and by source of the data, and what was taken for what."""
    scored = list(scored)
    return {
        "all": _figures(scored),
        "by_split": _grouped(scored, lambda each: each.split),
        "by_source": _grouped(scored, lambda each: each.source),
        "by_label": _grouped(scored, lambda each: each.gold_type),
        "confusion": _confusion(scored),
        "cases": [asdict(each) for each in scored],
    }


def split_of(path: Path, document: Mapping[str, Any]) -> str:
    """The benchmark's split: the folder of the file, else what its metadata says of the layer."""
    folders = (part.lower().replace("-", "_") for part in reversed(path.parts[:-1]))
    named = next((part for part in folders if part in SPLITS), None)
    if named:
        return named
    layer = str(_metadata(document).get("layer_type", "")).lower()
    return _SYSTEMS.get("".join(filter(str.isalnum, layer)), "other")


def source_of(document: Mapping[str, Any]) -> str:
    """The data set that the dialogue comes from."""
    metadata = _metadata(document)
    named = metadata.get("memtracebench_dataset_source") or metadata.get("dataset_type")
    return str(named or "unknown").lower()


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}


def read_document(path: Path) -> Json:
    """The JSON object in a file.

    Raises:
        DamagedError: there is none.
    """
    try:
        document = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise DamagedError(f"{path} is no smartcomment export: it is no JSON object")
    return document


def _golds(request: Any) -> dict[str, _Gold]:
    """By the span that carries an annotation."""
    spans: Iterable[Span] = (
        span
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    )
    found = {}
    for span in spans:
        told = attributes.decode(span.attributes)
        if GOLD_ERROR_TYPE in told:
            gold = _Gold(
                attributes.text(told, GOLD_ERROR_TYPE), attributes.text(told, GOLD_SPAN_ID)
            )
            found[f"{span.trace_id.hex()}:{span.span_id.hex()}"] = gold
    return found


def _verdict(store: InMemoryFactStore, flagged: Flagged, evidence: bool) -> Verdict:
    case = load_case(store, flagged.answer, flagged.flag, evidence_given=evidence)
    return attribute(case)


def _scored(
    path: Path, split: str, source: str, expected: str, gold: _Gold, verdict: Verdict | None
) -> Scored:
    error_type = verdict.error_type if verdict else ""
    decisive = verdict.decisive[0].operation.span_id if verdict and verdict.decisive else ""
    return Scored(
        file=path.name,
        split=split,
        source=source,
        expected=expected,
        gold_type=gold.error_type,
        gold_span=gold.span_id,
        verdict_type=error_type,
        verdict_label=LABEL_OF.get(error_type, ""),
        verdict_span=decisive,
        score=verdict.score if verdict else 0.0,
        explanation=verdict.explanation if verdict else "the answer is not in the file",
    )


def _figures(scored: Iterable[Scored]) -> Json:
    scored = list(scored)
    return {
        "total_cases": len(scored),
        "error_type_prediction_accuracy": share(s.type_right for s in scored).to_json(),
        "operation_identifier_prediction_accuracy": share(
            s.operation_right for s in scored
        ).to_json(),
        "joint": share(s.type_right and s.operation_right for s in scored).to_json(),
        "abstained": share(s.verdict_type == "insufficient_evidence" for s in scored).to_json(),
        "without_verdict": sum(not s.verdict_type for s in scored),
    }


def _grouped(scored: Iterable[Scored], key: Callable[[Scored], str]) -> Json:
    groups: dict[str, list[Scored]] = defaultdict(list)
    for each in scored:
        groups[key(each)].append(each)
    return {name: _figures(found) for name, found in sorted(groups.items())}


def _confusion(scored: Iterable[Scored]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {label: Counter() for label in LABELS}
    for each in scored:
        label = each.verdict_label or each.verdict_type or "no verdict"
        found.setdefault(each.gold_type, Counter())[label] += 1
    return {label: dict(counts.most_common()) for label, counts in found.items() if counts}
