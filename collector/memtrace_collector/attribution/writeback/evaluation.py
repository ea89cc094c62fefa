"""The verdict as the log record ``gen_ai.evaluation.result`` at the answer. Pure."""

from __future__ import annotations

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber

from memtrace_collector.attribution.writeback import sizes, spans
from memtrace_collector.attribution.writeback.told import Told
from memtrace_otel import semconv

EVALUATION_NAME = "memtrace.attribution"


def evaluation(told: Told) -> bytes:
    """An OTLP export request with that record."""
    record = LogRecord(
        time_unix_nano=told.now_ns,
        observed_time_unix_nano=told.now_ns,
        severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
        event_name=semconv.GEN_AI_EVALUATION_RESULT,
        trace_id=bytes.fromhex(told.answer.trace_id),
        span_id=bytes.fromhex(told.answer.span_id),
        attributes=sizes.attributes(
            {
                semconv.GEN_AI_EVALUATION_NAME: EVALUATION_NAME,
                semconv.GEN_AI_EVALUATION_SCORE_LABEL: told.verdict["error_type"],
                semconv.GEN_AI_EVALUATION_EXPLANATION: told.explanation,
                semconv.MEMTRACE_ATTRIBUTION_METHOD: told.verdict["method"],
                **told.judgement(),
                semconv.MEMTRACE_CASE_ID: told.case_id,
                semconv.MEMTRACE_CASE_TRACE_ID: told.root.trace_id,
            }
        ),
    )
    logs = ScopeLogs(scope=spans.SCOPE, log_records=[record])
    resource = spans.resource(told.answer.service or spans.SERVICE)
    request = ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(resource=resource, scope_logs=[logs])]
    )
    payload: bytes = request.SerializeToString(deterministic=True)
    return payload
