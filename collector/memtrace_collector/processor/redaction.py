"""Taking content off what is ours before it leaves for other systems. Pure, in place."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_otel import semconv

CONTENT_ATTRIBUTES = frozenset(
    (
        semconv.MEMTRACE_VALUES,
        semconv.MEMTRACE_EXPECTED,
        semconv.MEMTRACE_EVIDENCE,
        semconv.MEMTRACE_FLAG_REASON,
        semconv.MEMTRACE_JUDGEMENT_NOTE,
        semconv.GEN_AI_MEMORY_QUERY_TEXT,
        semconv.GEN_AI_MEMORY_RECORDS,
        semconv.GEN_AI_RETRIEVAL_QUERY_TEXT,
        semconv.GEN_AI_RETRIEVAL_DOCUMENTS,
        semconv.GEN_AI_INPUT_MESSAGES,
        semconv.GEN_AI_OUTPUT_MESSAGES,
        semconv.GEN_AI_SYSTEM_INSTRUCTIONS,
        semconv.GEN_AI_TOOL_CALL_ARGUMENTS,
        semconv.GEN_AI_TOOL_CALL_RESULT,
        semconv.GEN_AI_EVALUATION_EXPLANATION,
    )
)
_OUR_NAMES = ("memtrace.", "gen_ai.evaluation.")
_SPLIT_VALUES = f"{semconv.MEMTRACE_VALUES}."
"""``memtrace.values.1`` …: how a host splits what its length limit would cut."""


def is_content(name: str) -> bool:
    """May the attribute hold what a user or a model said?"""
    return name in CONTENT_ATTRIBUTES or name.startswith(_SPLIT_VALUES)


def remove_content(span: Span) -> bool:
    """Remove content attributes from a span and its events; True when there were any."""
    changed = [_filter(span.attributes), *(_filter(event.attributes) for event in span.events)]
    return any(changed)


def remove_log_content(record: LogRecord) -> bool:
    """Remove content attributes from an evaluation result; True when there were any.

    Other log records are not ours and stay as they are.
    """
    ours = record.event_name == semconv.GEN_AI_EVALUATION_RESULT or any(
        item.key.startswith(_OUR_NAMES) for item in record.attributes
    )
    return ours and _filter(record.attributes)


def _filter(attributes: Any) -> bool:
    kept = [item for item in attributes if not is_content(item.key)]
    if len(kept) == len(attributes):
        return False
    del attributes[:]
    attributes.extend(kept)
    return True
