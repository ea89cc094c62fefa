"""A stored verdict with what it takes to write it back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from memtrace_collector.attribution.explain import without_quotes
from memtrace_collector.attribution.verdict import MEMORY_STAGES
from memtrace_collector.attribution.writeback import identity
from memtrace_collector.attribution.writeback.spans import rfc3339
from memtrace_collector.attribution.writeback.target import WriteBack
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_otel import semconv

NOWHERE_ELSE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A verdict (JSON form with id and revision) as a destination is told of it.

    ``operations``: of the case, for the decisive ones. ``now_ns``: when its rows are written.
    """

    verdict: Mapping[str, Any]
    operations: Mapping[OperationKey, Operation]
    answer: Operation
    now_ns: int
    target: WriteBack

    @property
    def case_id(self) -> str:
        return str(self.verdict["id"])

    @property
    def revision(self) -> int:
        return int(self.verdict["revision"])

    @property
    def root(self) -> OperationKey:
        """The root of the case trace."""
        return self.root_of(self.revision)

    def root_of(self, revision: int) -> OperationKey:
        return OperationKey(
            identity.case_trace_id(self.case_id, revision),
            identity.root_span_id(self.case_id, revision),
        )

    @property
    def is_fault(self) -> bool:
        """Of memory; else nothing is an error."""
        return self.verdict["stage"] in MEMORY_STAGES

    @property
    def decisive(self) -> list[Operation]:
        """The decisive operations that are known, in causal order."""
        keys = map(span_key, self.verdict["decisive"])
        return [self.operations[key] for key in keys if key in self.operations]

    @property
    def explanation(self) -> str:
        """Without content, unless the destination may have it."""
        if self.target.quotes:
            return str(self.verdict["explanation"])
        first = next(iter(self.decisive), None)
        superseded = self.verdict.get("supersedes")
        says = (superseded["says"],) if superseded else ()
        return " ".join((without_quotes(self.verdict, first), *says))

    def attributes(self, where: Mapping[str, str] = NOWHERE_ELSE) -> dict[str, Any]:
        """What was found and where: what a person reads first, ids last.

        ``where``: further ids, before those of the case.
        """
        verdict, cause = self.verdict, next(iter(self.decisive), None)
        return {
            semconv.MEMTRACE_ATTRIBUTION_EXPLANATION: self.explanation,
            semconv.MEMTRACE_ATTRIBUTION_STAGE: verdict["stage"],
            semconv.MEMTRACE_ATTRIBUTION_TYPE: verdict["error_type"],
            **(_named(cause) if cause else {}),
            semconv.MEMTRACE_ATTRIBUTION_SCORE: float(verdict["score"]),
            semconv.MEMTRACE_ATTRIBUTION_BASIS: ",".join(verdict["basis"]),
            semconv.MEMTRACE_ATTRIBUTION_METHOD: verdict["method"],
            semconv.MEMTRACE_ATTRIBUTION_LINEAGE: verdict["lineage"],
            semconv.MEMTRACE_ATTRIBUTION_MISSING: ",".join(verdict["missing"]),
            semconv.MEMTRACE_ATTRIBUTION_REVISION: self.revision,
            **self.judgement(),
            semconv.MEMTRACE_CAUSE_FURTHER: _listed(
                each for each in verdict["decisive"] if cause is None or span_key(each) != cause.key
            ),
            semconv.MEMTRACE_CAUSE_ALSO: _listed(verdict["also"]),
            semconv.MEMTRACE_GRAPH_ID: verdict["graph_id"],
            **(_ids(cause) if cause else {}),
            **where,
            semconv.MEMTRACE_CASE_ID: self.case_id,
            semconv.MEMTRACE_CASE_TRACE_ID: self.root.trace_id,
        }

    def judgement(self) -> dict[str, str]:
        """Attributes that say what a person said of it; none when nobody did."""
        said = self.verdict.get("judgement")
        if not said:
            return {}
        return {
            semconv.MEMTRACE_JUDGEMENT_AGREEMENT: said["agreement"],
            semconv.MEMTRACE_JUDGEMENT_BY: said["by"],
            semconv.MEMTRACE_JUDGEMENT_NOTE: said["note"] if self.target.quotes else "",
        }

    def answer_ids(self) -> dict[str, str]:
        """Attributes that name the answer."""
        return {
            semconv.MEMTRACE_ANSWER_TRACE_ID: self.answer.trace_id,
            semconv.MEMTRACE_ANSWER_SPAN_ID: self.answer.span_id,
        }


def _named(cause: Operation) -> dict[str, str]:
    return {
        semconv.MEMTRACE_CAUSE_OPERATION: cause.name,
        semconv.MEMTRACE_CAUSE_SERVICE: cause.service,
        semconv.MEMTRACE_CAUSE_SYSTEM: cause.system,
        semconv.MEMTRACE_CAUSE_TIME: rfc3339(cause.start_ns),
    }


def _ids(cause: Operation) -> dict[str, str]:
    return {
        semconv.MEMTRACE_CAUSE_TRACE_ID: cause.trace_id,
        semconv.MEMTRACE_CAUSE_SPAN_ID: cause.span_id,
    }


def _listed(decisive: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"{each['traceId']}:{each['spanId']} {each['error_type']}" for each in decisive]


def span_key(span: Mapping[str, str]) -> OperationKey:
    """Of a span in a verdict's JSON form."""
    return OperationKey(span["traceId"], span["spanId"])
