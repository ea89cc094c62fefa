"""The requests that are sent while processes are killed: numbered, and the same every time.

Every fourth holds a whole contract vector with its flagged answer, in a graph of its own, so that
there is a verdict to find and to write back; the others are traces of a RAG agent with memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from memtrace_collector.log.format import LogRecord
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.receiver.decode import decode
from tests.benchmarks import rag_traces

VECTORS = Path(__file__).parents[1] / "contract" / "vectors"
FLAGGED = ("omission", "merged_wrong", "overwritten", "wrongly_deleted")
EVERY = 4
TIME_NS = 1_790_000_000_000_000_000
RAG_REQUESTS = 16
RAG_GRAPHS = 40
_READER = RecordReader()


class SpanId(NamedTuple):
    trace: bytes
    span: bytes


@lru_cache(maxsize=1)
def _rag() -> list[rag_traces.Request]:
    return rag_traces.requests(RAG_REQUESTS, spans=rag_traces.SPANS_PER_TRACE, graphs=RAG_GRAPHS)


@lru_cache(maxsize=len(FLAGGED))
def _vector(name: str) -> tuple[str, tuple[str, ...]]:
    text = (VECTORS / f"{name}.otlp.json").read_text()
    spans = [
        span
        for resource in json.loads(text)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    return text, tuple(sorted({span["traceId"] for span in spans}))


def is_flagged(number: int) -> bool:
    """Whether the request holds a flagged answer, one in a graph of its own."""
    return number % EVERY == 0


def body(number: int) -> bytes:
    """A protobuf export request; another for every number below 2^28."""
    if not is_flagged(number):
        return _rag()[number % RAG_REQUESTS].fresh(number, TIME_NS)
    name = FLAGGED[number // EVERY % len(FLAGGED)]
    text, traces = _vector(name)
    for trace in traces:
        text = text.replace(trace, f"{number:08x}{trace[8:]}")
    text = text.replace(f"user:{name}", f"user:kill-{number}")
    return bytes(decode("traces", "json", text.encode()).SerializeToString())


def span_ids(request: bytes) -> Iterator[SpanId]:
    """Every span of an encoded request."""
    for resource in ExportTraceServiceRequest.FromString(request).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield SpanId(span.trace_id, span.span_id)


def operations_by_graph(numbers: Iterable[int]) -> Counter[str]:
    """How many operations these requests hold, by graph."""
    counts: Counter[str] = Counter()
    for number in numbers:
        record = LogRecord("default", TIME_NS, "traces", "protobuf", body(number))
        for facts in _READER.facts(record):
            if facts.operation is not None:
                counts[facts.operation.graph_id] += 1
    return counts
