"""The verdict: what a case was found to be. A value with a JSON form (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memtrace_collector.graph.facts import OperationKey

STAGES: dict[str, tuple[str, ...]] = {
    "ingest": ("never_told", "lost_at_ingest", "wrong_graph"),
    "extraction": ("omission", "distortion", "invented", "not_stored"),
    "update": ("not_updated", "overwritten", "merged_wrong", "compacted_away"),
    "deletion": ("wrongly_deleted", "not_deleted"),
    "retrieval": (
        "not_searched",
        "wrong_scope",
        "bad_query",
        "not_retrieved",
        "ranked_out",
        "stale_retrieved",
    ),
    "assembly": ("cut_from_context", "garbled_in_context"),
    "response": (
        "wrong_abstention",
        "distracted",
        "wrong_reasoning",
        "ignored_context",
        "hallucinated",
    ),
    "not_memory": ("bad_reference", "bad_judge", "unrelated"),
    "unknown": ("insufficient_evidence",),
}
"""Error types by stage, in the order in which they are tested."""

STAGE_OF = {error_type: stage for stage, types in STAGES.items() for error_type in types}

MEMORY_STAGES = frozenset(STAGES) - {"not_memory", "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisive:
    """An operation that lost the information, and what it held before and after."""

    operation: OperationKey
    error_type: str
    last_right: str | None = None
    first_wrong: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            **_span(self.operation),
            "stage": STAGE_OF[self.error_type],
            "error_type": self.error_type,
            "last_right": self.last_right,
            "first_wrong": self.first_wrong,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence of the argument and the span it points at."""

    ref: str | None
    says: str
    span: OperationKey | None

    def to_json(self) -> dict[str, Any]:
        return {"ref": self.ref, "says": self.says, "span": self.span and _span(self.span)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One step of the path that the information took, for the case trace and the page."""

    kind: str
    """evidence, extraction, decision, write, retrieval, assembly or answer."""
    outcome: str
    """kept, changed, lost or unknown."""
    operation: OperationKey | None
    service: str = ""
    system: str = ""
    """The memory system at work, as in ``mem0``; empty: the sender does not say."""
    name: str = ""
    time_ns: int = 0
    record: str = ""
    versions: tuple[str, ...] = ()
    says: str = ""
    decisive: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "outcome": self.outcome,
            "span": self.operation and _span(self.operation),
            "service": self.service,
            "system": self.system,
            "operation": self.name,
            "time_ns": self.time_ns,
            "record": self.record,
            "versions": list(self.versions),
            "says": self.says,
            "decisive": self.decisive,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another reading of the case, less likely by ``score``."""

    error_type: str
    decisive: tuple[Decisive, ...] = ()
    score: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": STAGE_OF[self.error_type],
            "error_type": self.error_type,
            "decisive": [item.to_json() for item in self.decisive],
            "score": self.score,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the rules (or a model, or a person) found. ``score`` is not a probability.

    Pure: id, revision, creation time and case trace are added when it is stored.
    """

    graph_id: str
    answer: OperationKey
    error_type: str
    explanation: str
    decisive: tuple[Decisive, ...] = ()
    also: tuple[Decisive, ...] = ()
    aspect: str | None = None
    mechanism: str | None = None
    score: float = 0.0
    basis: tuple[str, ...] = ("structure",)
    method: str = "rules"
    evidence: tuple[Claim, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    lineage: str = "complete"
    absence: str = "proven"
    missing: tuple[str, ...] = ()
    path: tuple[Hop, ...] = field(default=())
    replay: Mapping[str, Any] | None = None
    """What a replay showed (JSON form); None: it was not replayed."""
    model: Mapping[str, Any] | None = None
    """What a model was asked, what it said and what that cost; None: it was not asked."""

    @property
    def stage(self) -> str:
        return STAGE_OF[self.error_type]

    def to_json(self) -> dict[str, Any]:
        """The finding, without what storing adds (id, revision, created, case_trace)."""
        first = self.decisive[0] if self.decisive else None
        return {
            "graph_id": self.graph_id,
            "answer": _span(self.answer),
            "stage": self.stage,
            "error_type": self.error_type,
            "aspect": self.aspect,
            "mechanism": self.mechanism,
            "decisive": [item.to_json() for item in self.decisive],
            "last_right": first and first.last_right,
            "first_wrong": first and first.first_wrong,
            "also": [item.to_json() for item in self.also],
            "score": round(self.score, 4),
            "basis": list(self.basis),
            "method": self.method,
            "explanation": self.explanation,
            "evidence": [claim.to_json() for claim in self.evidence],
            "alternatives": [item.to_json() for item in self.alternatives],
            "lineage": self.lineage,
            "absence": self.absence,
            "missing": list(self.missing),
            "path": [hop.to_json() for hop in self.path],
            "model": None if self.model is None else dict(self.model),
            "replay": dict(self.replay) if self.replay is not None else None,
        }


def _span(key: OperationKey) -> dict[str, str]:
    return {"traceId": key.trace_id, "spanId": key.span_id}
