"""A destination that keeps what it is sent, with what it can say about it afterwards."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.log.format import LogRecord
from tests.faults.kill_load import SpanId

OURS = ("memtrace.case", "memtrace.attribution", "memtrace.hop", "memtrace.cause")
"""Names of spans that only a verdict makes."""


class Arrived:
    """What stands in the records of a destination.

    ``spans``: how often each span came, verdicts apart. ``verdict_spans``: the encodings in which
    each span of a verdict came; ``again``: how many of them came more than once.
    """

    def __init__(self, records: Iterable[LogRecord]) -> None:
        self.spans: Counter[SpanId] = Counter()
        self.verdict_spans: defaultdict[SpanId, set[bytes]] = defaultdict(set)
        self.attributed: Counter[bytes] = Counter()
        """Answers, by the id of their trace: how many spans say what went wrong."""
        self._times: Counter[SpanId] = Counter()
        for record in records:
            if record.signal == "traces":
                self._take(ExportTraceServiceRequest.FromString(record.body))

    @property
    def delivered_again(self) -> int:
        """Deliveries beyond the first, of whatever span."""
        return sum(self._times.values()) - len(self._times)

    def altered(self) -> list[SpanId]:
        """Spans of verdicts that came with two contents."""
        return [key for key, bodies in self.verdict_spans.items() if len(bodies) > 1]

    def _take(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self._count(span)

    def _count(self, span: Span) -> None:
        key = SpanId(span.trace_id, span.span_id)
        self._times[key] += 1
        if span.name not in OURS:
            self.spans[key] += 1
            return
        if span.name == "memtrace.attribution" and key not in self.verdict_spans:
            self.attributed[span.trace_id] += 1
        self.verdict_spans[key].add(span.SerializeToString(deterministic=True))
