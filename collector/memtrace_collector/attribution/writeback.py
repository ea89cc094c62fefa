"""A verdict as OTLP: what goes back into the tools where the failing trace stands. Pure.

Ids derive from case and revision, times and bytes are fixed here: a second delivery of a row is
the same bytes, a superseding verdict has new ids and links to the old (DESIGN section 3.6).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from memtrace_collector.attribution.asked_spans import chat_spans
from memtrace_collector.attribution.explain import without_quotes
from memtrace_collector.attribution.verdict import MEMORY_STAGES
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.otlp.attributes import AttributeValue, encode
from memtrace_collector.store.base import OutboxEntry
from memtrace_otel import semconv

SERVICE = "memtrace"
"""Service of the case trace. The other spans bear the answer's own, to stand in its trace."""
EVALUATION_NAME = "memtrace.attribution"
LATE_NS = 3_600_000_000_000
MAX_SEARCHABLE_BYTES = 255
MAX_BYTES = 2_047
INSTANT_NS = 1_000
"""How long a span is that says something about a moment. Jaeger changes one that ends when it
starts, and then shows a second delivery of it as another span."""
_HOP_NS = 1_000_000
_LATE_SPANS = {"jaeger": "at_target", "tempo": "now", "none": None}
"""Per destination profile: how a verdict span is stamped in a trace over an hour old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    """What a destination takes: its profile (jaeger, tempo, none), and whether texts may go."""

    profile: str = "jaeger"
    quotes: bool = False


def case_trace_id(case_id: str, revision: int) -> str:
    """The trace of one case and revision, 32 hex digits."""
    return _digest("case", case_id, str(revision))[:32]


def root_span_id(case_id: str, revision: int) -> str:
    """The root span of a case trace, 16 hex digits."""
    return _digest("root", case_id, str(revision))[:16]


def entries(
    verdict: Mapping[str, Any],
    operations: Mapping[OperationKey, Operation],
    answer: Operation,
    *,
    now_ns: int,
    target: WriteBack,
) -> list[OutboxEntry]:
    """Every delivery of a stored verdict, its bytes fixed.

    Args:
        verdict: JSON form with id, revision and case_trace.
        operations: the case's operations, for the decisive ones.
        answer: the flagged answer.
        now_ns: when the rows are written.
        target: what the destination takes.
    """
    writer = _Writer(verdict, operations, answer, now_ns, target)
    case_id, revision = writer.case_id, writer.revision
    rows = [("case", "traces", writer.case_trace())]
    in_trace = writer.in_trace()
    if in_trace is not None:
        rows.append(("attribution", "traces", in_trace))
    rows.append(("evaluation", "logs", writer.evaluation()))
    found = [
        OutboxEntry(
            id=f"{case_id}/{revision}/{name}",
            case_id=case_id,
            revision=revision,
            signal=signal,
            payload=payload,
        )
        for name, signal, payload in rows
    ]
    markers = writer.markers() if target.profile == "jaeger" else []
    return found + [
        OutboxEntry(
            id=f"cause/{name}", case_id=case_id, revision=revision, signal="traces", payload=payload
        )
        for name, payload in markers
    ]


class _Writer:
    """Builds the requests of one verdict."""

    def __init__(
        self,
        verdict: Mapping[str, Any],
        operations: Mapping[OperationKey, Operation],
        answer: Operation,
        now_ns: int,
        target: WriteBack,
    ) -> None:
        self.verdict = verdict
        self.case_id: str = verdict["id"]
        self.revision: int = verdict["revision"]
        self.trace_id = case_trace_id(self.case_id, self.revision)
        self.answer = answer
        self.now_ns = now_ns
        self.target = target
        self.fault = verdict["stage"] in MEMORY_STAGES
        self.decisive = [
            operations[key] for each in verdict["decisive"] if (key := _key(each)) in operations
        ]
        first = self.decisive[0] if self.decisive else None
        self.explanation = (
            verdict["explanation"]
            if target.quotes
            else " ".join((without_quotes(verdict, first), *_superseding(verdict)))
        )

    def case_trace(self) -> bytes:
        """The self-contained trace of the case: its root, a child per hop and one per question to
        a model, stamped now."""
        root = root_span_id(self.case_id, self.revision)
        hops = [self._hop(root, n, hop) for n, hop in enumerate(self.verdict["path"])]
        links = [_link(self.answer.key)]
        if self.revision > 1:
            links.append(
                _link(
                    OperationKey(
                        case_trace_id(self.case_id, self.revision - 1),
                        root_span_id(self.case_id, self.revision - 1),
                    )
                )
            )
        span = Span(
            trace_id=bytes.fromhex(self.trace_id),
            span_id=bytes.fromhex(root),
            name=semconv.SPAN_CASE,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=self.now_ns,
            end_time_unix_nano=self.now_ns + max(1, len(hops)) * _HOP_NS,
            attributes=_attributes({**self._finding(), **self._where()}),
            links=links,
        )
        asked = chat_spans(
            self.verdict, self.trace_id, root, self.now_ns, quotes=self.target.quotes
        )
        return _trace_request(SERVICE, [span, *hops, *asked])

    def _hop(self, root: str, number: int, hop: Mapping[str, Any]) -> Span:
        start = self.now_ns + number * _HOP_NS
        key = _key(hop["span"]) if hop["span"] else None
        at_fault = self.fault and hop["decisive"]
        return Span(
            trace_id=bytes.fromhex(self.trace_id),
            span_id=bytes.fromhex(
                _digest("hop", self.case_id, str(self.revision), str(number))[:16]
            ),
            parent_span_id=bytes.fromhex(root),
            name=semconv.SPAN_HOP,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start,
            end_time_unix_nano=start + _HOP_NS,
            attributes=_attributes(
                {
                    semconv.MEMTRACE_HOP_KIND: hop["kind"],
                    semconv.MEMTRACE_HOP_OUTCOME: hop["outcome"],
                    semconv.MEMTRACE_HOP_SERVICE: hop["service"],
                    semconv.MEMTRACE_HOP_OPERATION: hop["operation"],
                    semconv.MEMTRACE_HOP_TIME: _rfc3339(hop["time_ns"]),
                    semconv.MEMTRACE_HOP_RECORD: hop["record"],
                    semconv.MEMTRACE_HOP_VERSIONS: hop["versions"],
                }
            ),
            links=[_link(key)] if key else [],
            status=_status(at_fault, self.explanation if at_fault else hop["says"]),
        )

    def in_trace(self) -> bytes | None:
        """The verdict inside the failing trace; None where late spans are refused."""
        at = self.answer.end_ns
        if self.now_ns - at > LATE_NS:
            policy = _LATE_SPANS[self.target.profile]
            if policy is None:
                return None
            at = at if policy == "at_target" else self.now_ns
        links = [
            _link(OperationKey(self.trace_id, root_span_id(self.case_id, self.revision))),
            *(_link(op.key) for op in self.decisive if op.key != self.answer.key),
        ]
        if self.revision > 1:
            older = OperationKey(self.answer.trace_id, self._in_trace_id(self.revision - 1))
            links.insert(1, _link(older))
        span = Span(
            trace_id=bytes.fromhex(self.answer.trace_id),
            span_id=bytes.fromhex(self._in_trace_id(self.revision)),
            parent_span_id=bytes.fromhex(self.answer.span_id),
            name=semconv.SPAN_ATTRIBUTION,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=at,
            end_time_unix_nano=at + INSTANT_NS,
            attributes=_attributes({**self._finding(), **self._cause()}),
            links=links[: semconv.MAX_LINKS],
            status=_status(self.fault, self.explanation),
        )
        return _trace_request(self.answer.service or SERVICE, [span])

    def _in_trace_id(self, revision: int) -> str:
        return _digest("in-trace", self.case_id, str(revision))[:16]

    def markers(self) -> list[tuple[str, bytes]]:
        """In each decisive operation's trace a sign that it broke an answer, with its row's name.

        One per operation and type, whichever case comes first. The answer itself needs none:
        the verdict already stands below it.
        """
        if not self.fault:
            return []
        root = OperationKey(self.trace_id, root_span_id(self.case_id, self.revision))
        found = []
        for op, entry in zip(self.decisive, self.verdict["decisive"]):
            if op.key == self.answer.key:
                continue
            name = f"{op.trace_id}:{op.span_id}/{entry['error_type']}"
            span = Span(
                trace_id=bytes.fromhex(op.trace_id),
                span_id=bytes.fromhex(_digest("cause", name)[:16]),
                parent_span_id=bytes.fromhex(op.span_id),
                name=semconv.SPAN_CAUSE,
                kind=Span.SPAN_KIND_INTERNAL,
                start_time_unix_nano=op.end_ns,
                end_time_unix_nano=op.end_ns + INSTANT_NS,
                attributes=_attributes(
                    {
                        semconv.MEMTRACE_ATTRIBUTION_STAGE: entry["stage"],
                        semconv.MEMTRACE_ATTRIBUTION_TYPE: entry["error_type"],
                        semconv.MEMTRACE_ANSWER_TRACE_ID: self.answer.trace_id,
                        semconv.MEMTRACE_ANSWER_SPAN_ID: self.answer.span_id,
                    }
                ),
                links=[_link(root), _link(self.answer.key)],
                status=_status(True, ""),
            )
            found.append((name, _trace_request(op.service or SERVICE, [span])))
        return found

    def evaluation(self) -> bytes:
        """The log record ``gen_ai.evaluation.result`` at the answer."""
        record = LogRecord(
            time_unix_nano=self.now_ns,
            observed_time_unix_nano=self.now_ns,
            severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
            event_name=semconv.GEN_AI_EVALUATION_RESULT,
            trace_id=bytes.fromhex(self.answer.trace_id),
            span_id=bytes.fromhex(self.answer.span_id),
            attributes=_attributes(
                {
                    semconv.GEN_AI_EVALUATION_NAME: EVALUATION_NAME,
                    semconv.GEN_AI_EVALUATION_SCORE_LABEL: self.verdict["error_type"],
                    semconv.GEN_AI_EVALUATION_EXPLANATION: self.explanation,
                    semconv.MEMTRACE_CASE_ID: self.case_id,
                    semconv.MEMTRACE_CASE_TRACE_ID: self.trace_id,
                }
            ),
        )
        logs = ScopeLogs(scope=InstrumentationScope(name=SERVICE), log_records=[record])
        resource = _resource(self.answer.service or SERVICE)
        request = ExportLogsServiceRequest(
            resource_logs=[ResourceLogs(resource=resource, scope_logs=[logs])]
        )
        payload: bytes = request.SerializeToString(deterministic=True)
        return payload

    def _finding(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            semconv.MEMTRACE_ATTRIBUTION_STAGE: verdict["stage"],
            semconv.MEMTRACE_ATTRIBUTION_TYPE: verdict["error_type"],
            semconv.MEMTRACE_ATTRIBUTION_SCORE: float(verdict["score"]),
            semconv.MEMTRACE_ATTRIBUTION_BASIS: ",".join(verdict["basis"]),
            semconv.MEMTRACE_ATTRIBUTION_METHOD: verdict["method"],
            semconv.MEMTRACE_ATTRIBUTION_LINEAGE: verdict["lineage"],
            semconv.MEMTRACE_ATTRIBUTION_MISSING: ",".join(verdict["missing"]) or None,
            semconv.MEMTRACE_ATTRIBUTION_REVISION: self.revision,
            semconv.MEMTRACE_ATTRIBUTION_EXPLANATION: self.explanation,
            semconv.MEMTRACE_CASE_ID: self.case_id,
            semconv.MEMTRACE_CASE_TRACE_ID: self.trace_id,
        }

    def _where(self) -> dict[str, Any]:
        return {
            semconv.MEMTRACE_ANSWER_TRACE_ID: self.answer.trace_id,
            semconv.MEMTRACE_ANSWER_SPAN_ID: self.answer.span_id,
            **self._cause(),
        }

    def _cause(self) -> dict[str, Any]:
        if not self.decisive:
            return {}
        cause = self.decisive[0]
        return {
            semconv.MEMTRACE_CAUSE_TRACE_ID: cause.trace_id,
            semconv.MEMTRACE_CAUSE_SPAN_ID: cause.span_id,
            semconv.MEMTRACE_CAUSE_SERVICE: cause.service or None,
            semconv.MEMTRACE_CAUSE_OPERATION: cause.name,
            semconv.MEMTRACE_CAUSE_TIME: _rfc3339(cause.start_ns),
        }


def _superseding(verdict: Mapping[str, Any]) -> tuple[str, ...]:
    superseded = verdict.get("supersedes")
    return (superseded["says"],) if superseded else ()


def _key(span: Mapping[str, str]) -> OperationKey:
    return OperationKey(span["traceId"], span["spanId"])


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _rfc3339(time_ns: int) -> str:
    moment = datetime.fromtimestamp(time_ns // 1_000_000_000, tz=timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ns % 1_000_000_000 // 1_000_000:03d}Z"


def _clipped(value: str, limit: int) -> str:
    return value.encode(errors="replace")[:limit].decode(errors="ignore")


_LONG = frozenset({semconv.MEMTRACE_ATTRIBUTION_EXPLANATION, semconv.GEN_AI_EVALUATION_EXPLANATION})


def _attributes(values: Mapping[str, AttributeValue | None]) -> list[KeyValue]:
    return encode(
        {
            name: _bounded(value, MAX_BYTES if name in _LONG else MAX_SEARCHABLE_BYTES)
            for name, value in values.items()
            if value is not None and value != ""
        }
    )


def _bounded(value: AttributeValue, limit: int) -> AttributeValue:
    if isinstance(value, str):
        return _clipped(value, limit)
    if isinstance(value, Sequence):
        return [_clipped(each, limit) for each in value]
    return value


def _link(key: OperationKey) -> Span.Link:
    return Span.Link(trace_id=bytes.fromhex(key.trace_id), span_id=bytes.fromhex(key.span_id))


def _status(error: bool, message: str) -> Status:
    if not error:
        return Status()
    return Status(code=Status.STATUS_CODE_ERROR, message=_clipped(message, MAX_BYTES))


def _resource(service: str) -> Resource:
    return Resource(attributes=_attributes({semconv.SERVICE_NAME: service}))


def _trace_request(service: str, spans: Iterable[Span]) -> bytes:
    scoped = ScopeSpans(scope=InstrumentationScope(name=SERVICE), spans=spans)
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=_resource(service), scope_spans=[scoped])]
    )
    payload: bytes = request.SerializeToString(deterministic=True)
    return payload
