"""Lineage of agent memory as OpenTelemetry spans: which operation broke this answer?"""

from __future__ import annotations

from memtrace_otel.flags import flag
from memtrace_otel.instrumentation import instrument, uninstrument
from memtrace_otel.operations import MemoryOperation
from memtrace_otel.references import (
    answer,
    context,
    deleted_memory,
    document,
    fact,
    memory,
    message,
    prompt,
    query,
    unknown_memory,
)
from memtrace_otel.runtime import set_redactor
from memtrace_otel.tracer import (
    OperationScope,
    adopt_operation,
    current_operation,
    graph,
    operation,
    owner_graph_id,
    start_operation,
)
from memtrace_otel.variables import Variable, VariableRef

__all__ = [
    "MemoryOperation",
    "OperationScope",
    "Variable",
    "VariableRef",
    "adopt_operation",
    "answer",
    "context",
    "current_operation",
    "deleted_memory",
    "document",
    "fact",
    "flag",
    "graph",
    "instrument",
    "memory",
    "message",
    "operation",
    "owner_graph_id",
    "prompt",
    "query",
    "set_redactor",
    "start_operation",
    "uninstrument",
    "unknown_memory",
]
