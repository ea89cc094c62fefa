"""The questions answered from the store. Everything a person or a page may ask passes here."""

from __future__ import annotations

import time
from collections import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.api.case_slice import case_slice, span_keys
from memtrace_collector.api.flagging import flag_request
from memtrace_collector.api.history import history_json
from memtrace_collector.api.impact import impact_json
from memtrace_collector.api.questions import GRAPH_FORMATS, Json
from memtrace_collector.api.receipt import about_json, receipt_json
from memtrace_collector.api.shapes import (
    check_reference,
    is_span,
    operation_json,
    parse_answer,
    span_json,
)
from memtrace_collector.attribution.worker import SetAside
from memtrace_collector.config import check_method
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph import flags, impact, invariants, receipt, render, versions
from memtrace_collector.graph.ancestry import ancestry
from memtrace_collector.graph.case import Case, Write
from memtrace_collector.graph.facts import Flag, Operation
from memtrace_collector.graph.loader import load_case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Occurrence
from memtrace_collector.graph.slice import slice_of
from memtrace_collector.log.position import LogPosition
from memtrace_collector.otlp.json_form import to_json
from memtrace_collector.store.base import CaseStore, FactStore
from memtrace_otel import semconv, variables


@dataclass(frozen=True, slots=True)
class Work:
    """What the service asks others to do.

    ``append(body, signal)`` returns when the request is on disk; ``settle()`` when everything
    on disk is projected; ``attribute(method, graph_id, evidence)`` is one pass over flagged
    answers and returns their current verdicts; ``set_aside`` are the cases it could not judge;
    ``request_at`` reads one trace request of the log.
    """

    append: Callable[[bytes, str], None]
    settle: Callable[[], None]
    attribute: Callable[[str, str, bool], list[Json]]
    set_aside: Callable[[], Mapping[str, SetAside]]
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
        found = versions.versions(Lookups(self._facts), graph_id, name)
        if not found:
            raise NotFoundError(f"nobody was seen to write {name} in {graph_id}")
        return history_json(graph_id, name, found)

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

    def attribute(self, method: str, graph_id: str, evidence: bool) -> Json:
        check_method(method)
        self._work.settle()
        verdicts = self._work.attribute(method, graph_id, evidence)
        set_aside = [
            {"id": identity, "answer": span_json(case.answer.key), "reason": case.reason}
            for identity, case in self._work.set_aside().items()
            if graph_id in ("", case.answer.graph_id)
        ]
        return {"verdicts": verdicts, "set_aside": set_aside}

    def verdicts(self, graph_id: str, stage: str, error_type: str) -> list[Json]:
        return [
            verdict
            for verdict in self._cases.verdicts(graph_id or None)
            if stage in ("", verdict["stage"]) and error_type in ("", verdict["error_type"])
        ]

    def why(self, answer: str, about: str) -> Json:
        case = self._case(answer)
        reads = receipt.receipt(case)
        found = receipt_json(case, reads)
        if about:
            found["about"] = about_json(case, about, reads, self._histories_of(case, about))
        return found

    def impact(self, target: str) -> Json:
        lookups = Lookups(self._facts)
        start = self._start_of(lookups, target)
        if not start:
            raise NotFoundError(f"nothing that was recorded comes from {target!r}")
        found = impact.impact(lookups, start)
        return impact_json(target, found, impact.texts_of(lookups, found.derived))

    def case(self, answer: str, redact: bool) -> Json:
        case = self._case(answer)
        part = slice_of(self._facts, case)
        wanted = set(part.operations)
        positions = self._facts.first_position(wanted)
        requests = [self._work.request_at(item) for item in sorted(set(positions.values()))]
        if case.flag.origin:
            requests.append(_flag_of_case(case, redact))
            wanted.update(span_keys(requests[-1]))
        return to_json(case_slice(requests, wanted, part.gapless, redact=redact))

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
        flag = flags.flag_of(self._facts, answer) or Flag(
            graph_id=answer.graph_id, trace_id=answer.trace_id, span_id=answer.span_id
        )
        return load_case(self._facts, answer, flag)

    def _histories_of(self, case: Case, what: str) -> dict[str, tuple[Write, ...]]:
        """The records that ``what`` means, best match first, with their writes."""
        found = receipt.matching_records(case, what)
        records = found or receipt.search_records(self._facts, case, what)
        lookups = Lookups(self._facts)
        graph_ids = (case.answer.graph_id, *sorted(case.readable_graphs))
        return {
            record: next(filter(None, (lookups.history(g, record) for g in graph_ids)), ())
            for record in records
        }

    def _start_of(self, lookups: Lookups, target: str) -> list[Occurrence]:
        if target.partition(":")[0] in semconv.KINDS:
            return impact.occurrences_of(lookups, target)
        if is_span(target):
            key = parse_answer(target)
            spans = self._facts.trace_operations(key.trace_id)
            return impact.outputs_of(item for item in spans if item.key == key)
        return impact.outputs_of(self._facts.conversation_operations(target))


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
