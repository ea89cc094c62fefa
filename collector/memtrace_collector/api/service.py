"""The questions answered from the store. Everything a person or a page may ask passes here."""

from __future__ import annotations

import time
from collections import abc
from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.api import impact as impacts
from memtrace_collector.api import receipt
from memtrace_collector.api.case_slice import case_slice, span_keys
from memtrace_collector.api.flagging import flag_request
from memtrace_collector.api.otlp_json import to_json
from memtrace_collector.api.questions import GRAPH_FORMATS, Json
from memtrace_collector.api.record_history import record_history
from memtrace_collector.api.shapes import (
    check_reference,
    is_span,
    operation_json,
    parse_answer,
    span_json,
)
from memtrace_collector.config import check_method
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph import flags, invariants, render
from memtrace_collector.graph.ancestry import ancestry
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.closure import processes_of
from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Sequence
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Occurrence
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import CaseStore, FactStore
from memtrace_otel import semconv, variables

_SEARCHED = 5


@dataclass(frozen=True, slots=True)
class Work:
    """What the service asks others to do.

    ``append(body, signal)`` returns when the request is on disk; ``settle()`` when everything
    on disk is projected; ``attribute(graph_id, evidence)`` is one pass over flagged answers
    and returns their current verdicts; ``request_at`` reads one trace request of the log.
    """

    append: Callable[[bytes, str], None]
    settle: Callable[[], None]
    attribute: Callable[[str, bool], list[Json]]
    request_at: Callable[[LogPosition], ExportTraceServiceRequest]


class Service:
    """Implements :class:`~memtrace_collector.api.questions.Questions` over one tenant."""

    def __init__(
        self,
        facts: FactStore,
        cases: CaseStore,
        work: Work,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._facts = facts
        self._cases = cases
        self._work = work
        self._clock_ns = clock_ns

    def graphs(self) -> list[Json]:
        return [dict(summary._asdict()) for summary in self._facts.graphs()]

    def graph(self, graph_id: str, answer: str, output_format: str) -> str:
        if output_format not in GRAPH_FORMATS:
            raise WrongUseError(f"the format is one of {', '.join(GRAPH_FORMATS)}")
        self._known(graph_id)
        lookups = Lookups(self._facts)
        if answer:
            operations = list(ancestry(lookups, self._answer(answer)).operations.values())
        else:
            operations = list(self._facts.all_operations(graph_id))
        return render.render(lookups, graph_id, operations, output_format)

    def graph_hash(self, graph_id: str) -> str:
        self._known(graph_id)
        return self._facts.graph_hash(graph_id)

    def ancestry(self, answer: str) -> Json:
        operation = self._answer(answer)
        found = ancestry(Lookups(self._facts), operation)
        ordered = sorted(found.operations.values(), key=lambda item: (item.start_ns, item.key))
        return {
            "answer": span_json(operation.key),
            "graph_id": operation.graph_id,
            "lineage": found.status,
            "missing": list(found.missing),
            "operations": [operation_json(item) for item in ordered],
        }

    def history(self, graph_id: str, record: str) -> Json:
        self._known(graph_id)
        name = variables.record_of(record) if "@" in record else record
        found = record_history(Lookups(self._facts), graph_id, name)
        if not found["versions"]:
            raise NotFoundError(f"nobody was seen to write {name} in {graph_id}")
        return found

    def flag(
        self, answer: str, expected: str | None, evidence: abc.Sequence[str], reason: str
    ) -> Json:
        for reference in evidence:
            check_reference(reference)
        operation = self._answer(answer)
        request = flag_request(
            operation.key, self._clock_ns(), expected=expected, evidence=evidence, reason=reason
        )
        self._work.append(request, "traces")
        self._work.settle()
        return {"answer": span_json(operation.key), "graph_id": operation.graph_id}

    def attribute(self, method: str, graph_id: str, evidence: bool) -> list[Json]:
        check_method(method)
        self._work.settle()
        return self._work.attribute(graph_id, evidence)

    def verdicts(self, graph_id: str, stage: str, error_type: str) -> list[Json]:
        return [
            verdict
            for verdict in self._cases.verdicts(graph_id or None)
            if stage in ("", verdict["stage"]) and error_type in ("", verdict["error_type"])
        ]

    def why(self, answer: str, about: str) -> Json:
        case = self._case(answer)
        found = receipt.receipt(case)
        if about:
            records = receipt.matching_records(case, about) or self._search(case, about)
            lookups = Lookups(self._facts)
            graph_ids = (case.answer.graph_id, *sorted(case.readable_graphs))
            histories = {
                record: next(filter(None, (lookups.history(g, record) for g in graph_ids)), ())
                for record in records
            }
            found["about"] = receipt.about(case, about, records, histories)
        return found

    def impact(self, target: str) -> Json:
        lookups = Lookups(self._facts)
        start = self._start_of(lookups, target)
        if not start:
            raise NotFoundError(f"nothing that was recorded comes from {target!r}")
        return impacts.impact(lookups, target, start)

    def case(self, answer: str, redact: bool) -> Json:
        case = self._case(answer)
        wanted = {*case.operations, case.answer.key, *self._behind_gaps(case)}
        positions = self._facts.first_position(wanted)
        lossy = {loss.process for loss in case.closure.losses}
        gapless = processes_of(case.operations.values()) - lossy
        requests = [self._work.request_at(item) for item in sorted(set(positions.values()))]
        if case.flag.origin:
            requests.append(_flag_of_case(case, redact))
            wanted.update(span_keys(requests[-1]))
        return to_json(case_slice(requests, wanted, gapless, redact=redact))

    def invariants(self, graph_id: str) -> list[Json]:
        if graph_id:
            self._known(graph_id)
        graph_ids = [graph_id] if graph_id else [item.graph_id for item in self._facts.graphs()]
        found = (item for each in graph_ids for item in invariants.check(self._facts, each))
        return [
            {
                "kind": item.kind,
                "graph_id": item.graph_id,
                "operation": str(item.operation),
                "span": span_json(item.operation),
                "ref": item.ref,
                "says": item.says,
            }
            for item in found
        ]

    def append(self, body: bytes, signal: str) -> None:
        self._work.append(body, signal)

    def settle(self) -> Json:
        self._work.settle()
        return {"operations": sum(item.operations for item in self._facts.graphs())}

    def _known(self, graph_id: str) -> None:
        if all(summary.graph_id != graph_id for summary in self._facts.graphs()):
            raise NotFoundError(
                f"there is no graph {graph_id!r}; `memtrace-otel graphs` lists them"
            )

    def _answer(self, text: str) -> Operation:
        key = parse_answer(text)
        target = Flag(trace_id=key.trace_id, span_id=key.span_id)
        operation = flags.resolve(self._facts, target)
        if operation is None:
            raise NotFoundError(f"no answer is known at {text} or below it")
        return operation

    def _case(self, text: str) -> Case:
        answer = self._answer(text)
        flag = self._flag_of(answer) or Flag(
            graph_id=answer.graph_id, trace_id=answer.trace_id, span_id=answer.span_id
        )
        return load_case(self._facts, answer, flag)

    def _flag_of(self, answer: Operation) -> Flag | None:
        """The latest flag that means this answer."""
        meant = [
            flag
            for flag in self._facts.flags()
            if _may_mean(flag, answer)
            and (found := flags.resolve(self._facts, flag)) is not None
            and found.key == answer.key
        ]
        return max(meant, key=lambda flag: (flag.at_ns, flag.origin), default=None)

    def _behind_gaps(self, case: Case) -> set[OperationKey]:
        """The first operation after each loss: without it nobody sees that one was lost."""
        numbers = {Sequence(loss.process, loss.last + 1) for loss in case.closure.losses}
        graph_ids = sorted(case.readable_graphs) if numbers else ()
        return {
            item.key
            for graph_id in graph_ids
            for item in self._facts.all_operations(graph_id)
            if item.sequence in numbers
        }

    def _search(self, case: Case, text: str) -> list[str]:
        kinds = (semconv.KIND_MEMORY, semconv.KIND_DOCUMENT)
        found = [
            variables.record_of(value.ref)
            for graph_id in sorted(case.readable_graphs)
            for value in self._facts.search_values(graph_id, text, kinds, _SEARCHED)
        ]
        return list(dict.fromkeys(found))[:_SEARCHED]

    def _start_of(self, lookups: Lookups, target: str) -> list[Occurrence]:
        if target.partition(":")[0] in semconv.KINDS:
            return impacts.occurrences_of(lookups, target)
        if is_span(target):
            key = parse_answer(target)
            spans = self._facts.trace_operations(key.trace_id)
            return impacts.outputs_of(item for item in spans if item.key == key)
        return impacts.outputs_of(self._facts.conversation_operations(target))


def _may_mean(flag: Flag, answer: Operation) -> bool:
    """Without a read: could this flag mean this answer?"""
    if flag.trace_id:
        return flag.trace_id == answer.trace_id
    if flag.response_id:
        return flag.response_id == answer.response_id
    return flag.conversation_id == answer.conversation_id


def _flag_of_case(case: Case, redact: bool) -> ExportTraceServiceRequest:
    flag = case.flag
    body = flag_request(
        case.answer.key,
        flag.at_ns,
        expected=None if redact else flag.expected,
        evidence=flag.evidence,
        reason="" if redact else flag.reason,
        source=flag.source,
    )
    return ExportTraceServiceRequest.FromString(body)
