"""Log records -> facts, by the enabled dialects. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.dialects import attributes, registry
from memtrace_collector.dialects.attributes import Source
from memtrace_collector.dialects.evaluation import NO_THRESHOLDS, Thresholds
from memtrace_collector.graph.facts import SpanFacts
from memtrace_collector.log.format import LogRecord
from memtrace_collector.receiver.decode import decode_logs, decode_traces

RepeatedSpans: TypeAlias = Any
"""A protobuf repeated field of spans."""


class RecordReader:
    """Reads log records as the enabled dialects understand them.

    Args:
        markers: a record without any of these byte strings holds nothing for us and is
            never decoded; None: those of all dialects.
        thresholds: evaluation name -> least passing score.
    """

    def __init__(
        self, markers: Iterable[bytes] | None = None, thresholds: Thresholds = NO_THRESHOLDS
    ) -> None:
        wanted = registry.markers() if markers is None else markers
        self._marker = re.compile(b"|".join(re.escape(marker) for marker in sorted(set(wanted))))
        self._thresholds = thresholds

    def concerns_us(self, record: LogRecord) -> bool:
        """May the record hold a span or log record of an enabled dialect?"""
        return record.signal != "control" and self._marker.search(record.body) is not None

    def facts(self, record: LogRecord) -> Sequence[SpanFacts]:
        """What the record says; empty when it does not concern us.

        Raises:
            InvalidRequestError: not the request that it should be.
        """
        if not self.concerns_us(record):
            return ()
        if record.signal == "traces":
            request = decode_traces(record)
            return list(registry.read_request(record.tenant, request, self._thresholds))
        return list(registry.read_logs(record.tenant, decode_logs(record), self._thresholds))


class SpanGroup(NamedTuple):
    """The spans of one scope of a request, in order, with what each says (None: not ours)."""

    container: RepeatedSpans
    spans: list[tuple[Span, SpanFacts | None]]


def span_groups(tenant: str, request: ExportTraceServiceRequest) -> list[SpanGroup]:
    """Every span of a request, where it stands, and its facts."""
    groups = []
    for resource_spans in request.resource_spans:
        resource = attributes.decode(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            source = Source(tenant, resource, scope_spans.scope.name)
            spans = [(span, registry.read_span(span, source)) for span in scope_spans.spans]
            groups.append(SpanGroup(scope_spans.spans, spans))
    return groups
