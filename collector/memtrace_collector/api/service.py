"""The questions answered from the store. Everything a person or a page may ask passes here."""

from __future__ import annotations

import time
from collections import abc
from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.api.case_slice import case_slice, span_keys
from memtrace_collector.api.explorer.catalog import VIEWS
from memtrace_collector.api.exploring import Stores, explore, invariants_found
from memtrace_collector.api.flagging import flag_request
from memtrace_collector.api.questions import GRAPH_FORMATS, Json, Replaying
from memtrace_collector.attribution.judging import judged, label
from memtrace_collector.attribution.judging.said import Said
from memtrace_collector.attribution.work.intake import case_id
from memtrace_collector.errors import NotFoundError, WrongUseError
from memtrace_collector.graph import render
from memtrace_collector.graph.ancestry import ancestry
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.questions import answers, receipts, records, references
from memtrace_collector.graph.questions.answered import AS_THEY_ARE
from memtrace_collector.graph.questions.shapes import check_reference, span_json
from memtrace_collector.graph.questions.suggest import known_graph
from memtrace_collector.graph.slice import slice_of
from memtrace_collector.log.position import LogPosition
from memtrace_collector.otlp.json_form import to_json
from memtrace_collector.settings.attribution import check_method, check_replay_runs
from memtrace_collector.store.base import CaseStore, FactStore


@dataclass(frozen=True, slots=True)
class Work:
    """What the service asks others to do.

    ``append(body, signal)`` returns when the request is on disk; ``settle()`` when everything
    on disk is projected; ``attribute(method, graph_id, evidence, replay)`` is one pass over
    flagged answers and returns their current verdicts; ``request_at`` reads one trace request of
    the log; ``erase`` forgets a graph, or (empty) all of the tenant; ``judge`` takes what a
    person says of a case's verdict.
    """

    append: Callable[[bytes, str], None]
    settle: Callable[[], None]
    attribute: Callable[[str, str, bool, Replaying | None], list[Json]]
    request_at: Callable[[LogPosition], ExportTraceServiceRequest]
    erase: Callable[[str], Json]
    judge: Callable[[Case, Said], Json]


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
        known_graph(self._facts, graph_id)
        lookups = Lookups(self._facts)
        if answer:
            start = answers.answer_at(self._facts, answer)
            operations = list(ancestry(lookups, start).operations.values())
        else:
            operations = list(self._facts.all_operations(graph_id))
        return render.render(lookups, graph_id, operations, output_format)

    def graph_hash(self, graph_id: str) -> str:
        known_graph(self._facts, graph_id)
        return self._facts.graph_hash(graph_id)

    def ancestry(self, answer: str) -> Json:
        return answers.ancestry(self._facts, answer).whole()

    def history(self, graph_id: str, record: str) -> Json:
        return records.history(self._facts, graph_id, record, AS_THEY_ARE).whole()

    def flag(
        self, answer: str, expected: str | None, evidence: abc.Sequence[str], reason: str
    ) -> Json:
        for reference in evidence:
            check_reference(reference)
        operation = answers.answer_at(self._facts, answer)
        request = flag_request(
            operation.key, self._clock_ns(), expected=expected, evidence=evidence, reason=reason
        )
        self._work.append(request, "traces")
        self._work.settle()
        return {"answer": span_json(operation.key), "graph_id": operation.graph_id}

    def attribute(
        self, method: str, graph_id: str, evidence: bool, replay: Replaying | None = None
    ) -> Json:
        check_method(method)
        if replay is not None and replay.runs:
            check_replay_runs(replay.runs)
        self._work.settle()
        verdicts = self._work.attribute(method, graph_id, evidence, replay)
        return {"verdicts": verdicts, "set_aside": self.set_aside(graph_id)}

    def set_aside(self, graph_id: str) -> list[Json]:
        return [
            {
                "id": item.case.case_id,
                "graph_id": item.case.graph_id,
                "answer": {"traceId": item.case.trace_id, "spanId": item.case.span_id},
                "reason": item.reason,
                "attempts": item.attempts,
            }
            for item in self._cases.set_aside(graph_id)
        ]

    def verdicts(
        self, graph_id: str, stage: str, error_type: str, history: bool = False
    ) -> list[Json]:
        return [
            verdict
            for verdict in self._cases.verdicts(graph_id or None, history=history)
            if stage in ("", verdict["stage"]) and error_type in ("", verdict["error_type"])
        ]

    def judge(self, answer: str, said: Said) -> Json:
        return self._work.judge(answers.case_of(self._facts, answer), said)

    def undelivered(self) -> list[Json]:
        return [
            {
                "id": row.id,
                "case_id": row.case_id,
                "revision": row.revision,
                "signal": row.signal,
                "destination": row.destination,
                "attempts": row.attempts,
                "error": row.last_error,
            }
            for row in self._cases.outbox_abandoned()
        ]

    def redeliver(self) -> Json:
        return {"reopened": self._cases.outbox_reopen(self._clock_ns())}

    def why(self, answer: str, about: str) -> Json:
        return receipts.why(self._facts, answer, about, AS_THEY_ARE).whole()

    def impact(self, target: str) -> Json:
        return references.impact(self._facts, target, AS_THEY_ARE).whole()

    def explore(self, question: str, arguments: abc.Mapping[str, object], text_chars: int) -> Json:
        return explore(Stores(self._facts, self._cases), question, arguments, text_chars)

    def view(self, name: str, parameters: abc.Mapping[str, str]) -> Json:
        show = VIEWS.get(name)
        if show is None:
            raise NotFoundError(f"there is no view {name!r}; there are {', '.join(VIEWS)}")
        return show(Stores(self._facts, self._cases), parameters)

    def case(self, answer: str, redact: bool) -> Json:
        case = answers.case_of(self._facts, answer)
        part = slice_of(self._facts, case)
        wanted = set(part.operations)
        positions = self._facts.first_position(wanted)
        requests = [self._work.request_at(item) for item in sorted(set(positions.values()))]
        if case.flag.origin:
            requests.append(_flag_of_case(case, redact))
            wanted.update(span_keys(requests[-1]))
        verdict = self._cases.verdict(case_id(case.answer))
        if verdict is not None and judged.is_judged(verdict):
            requests.append(label.request(verdict))
            wanted.update(span_keys(requests[-1]))
        return to_json(case_slice(requests, wanted, part.gapless, redact=redact))

    def invariants(self, graph_id: str) -> list[Json]:
        found = invariants_found(self._facts, graph_id)
        return found.render(found.items)

    def append(self, body: bytes, signal: str) -> None:
        self._work.append(body, signal)

    def settle(self) -> Json:
        self._work.settle()
        return {"operations": sum(item.operations for item in self._facts.graphs())}

    def erase(self, graph_id: str) -> Json:
        return self._work.erase(graph_id)


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
