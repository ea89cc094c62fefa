"""What of a log record goes on to a destination, and in which form."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.graph.facts import Operation, OperationKey, SpanFacts
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.sources import Source, resolve_sources
from memtrace_collector.log.format import Encoding, LogRecord
from memtrace_collector.log.position import LogPosition
from memtrace_collector.processor.links import Link, missing_links
from memtrace_collector.processor.quarantine import BAD_DATA
from memtrace_collector.processor.reading import RecordReader, SpanGroup, span_groups
from memtrace_collector.processor.redaction import remove_content, remove_log_content
from memtrace_collector.receiver.decode import decode_logs, decode_traces
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_otel import semconv

logger = logging.getLogger(__name__)

_Sources = Mapping[OperationKey, list[Source]]


class ForwardStore(GraphReader, Protocol):
    """The part of :class:`~memtrace_collector.store.base.FactStore` that is needed here."""

    def first_position(self, keys: Iterable[OperationKey]) -> dict[OperationKey, LogPosition]: ...

    def cursor(self, name: str = "projection") -> LogPosition: ...


class Payload(NamedTuple):
    """Bytes to send, and how they are encoded."""

    body: bytes
    encoding: Encoding


class Outgoing:
    """Prepares records: repeated operations left out, links completed, content removed.

    Args:
        values: send content on as well.
        encodings: what the destination takes.
    """

    def __init__(
        self,
        store: ForwardStore,
        reader: RecordReader,
        *,
        encodings: Collection[Encoding],
        values: bool = False,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._store = store
        self._reader = reader
        self._encodings = encodings
        self._values = values
        self._metrics = metrics

    def prepare(self, position: LogPosition, record: LogRecord) -> Payload | None:
        """What to send of the record at ``position``; None when nothing is left to send.

        A record without anything of ours passes byte for byte, unless the destination does not
        take its encoding.

        Raises:
            InvalidRequestError: the record cannot be read, so nothing can be taken off it.
        """
        if not self._reader.concerns_us(record):
            return self._unchanged(record)
        if record.signal == "logs":
            return self._logs(record)
        request = decode_traces(record)
        groups = span_groups(record.tenant, request)
        ours = [facts for group in groups for _, facts in group.spans if facts is not None]
        if not ours:
            return self._unchanged(record)
        repeated = self._repeated(position, ours)
        sources = self._sources(
            [operation for operation in _operations(ours) if operation.key not in repeated]
        )
        kept = [self._rewrite(group, set(repeated), sources) for group in groups]
        if not any(kept):
            return None
        return Payload(bytes(request.SerializeToString()), "protobuf")

    def _logs(self, record: LogRecord) -> Payload:
        if self._values:
            return self._unchanged(record)
        request = decode_logs(record)
        changed = [
            remove_log_content(item)
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for item in scope.log_records
        ]
        if not any(changed):
            return self._unchanged(record)
        return Payload(bytes(request.SerializeToString()), "protobuf")

    def _unchanged(self, record: LogRecord) -> Payload:
        if record.encoding in self._encodings:
            return Payload(record.body, record.encoding)
        decode = decode_traces if record.signal == "traces" else decode_logs
        return Payload(bytes(decode(record).SerializeToString()), "protobuf")

    def _repeated(self, position: LogPosition, ours: list[SpanFacts]) -> set[OperationKey]:
        """Operations whose first copy is another record: that one goes on."""
        keys = [operation.key for operation in _operations(ours)]
        first = self._store.first_position(keys)
        return {key for key in keys if first.get(key, position) != position}

    def _sources(self, operations: list[Operation]) -> _Sources:
        try:
            return resolve_sources(self._store, operations)
        except BAD_DATA:
            self._metrics.add("memtrace.forward.links_failed", len(operations))
            logger.exception("links could not be completed; the spans go on without")
            return {}

    def _rewrite(self, group: SpanGroup, seen: set[OperationKey], sources: _Sources) -> int:
        """Change a group in place; the number of spans that stay. ``seen`` grows."""
        kept = [span for span, facts in group.spans if facts is None or _is_new(facts, seen)]
        for span, facts in group.spans:
            if facts is None:
                continue
            if not self._values:
                remove_content(span)
            if facts.operation is not None:
                _add_links(span, facts.operation, sources.get(facts.operation.key, []))
        left_out = len(group.spans) - len(kept)
        if left_out:
            self._metrics.add("memtrace.forward.repeated", left_out)
            del group.container[:]
            group.container.extend(kept)
        return len(kept)


def _operations(facts: Iterable[SpanFacts]) -> list[Operation]:
    return [item.operation for item in facts if item.operation is not None]


def _is_new(facts: SpanFacts, seen: set[OperationKey]) -> bool:
    """First copy of its operation? Remembers it."""
    if facts.operation is None:
        return True
    new = facts.operation.key not in seen
    seen.add(facts.operation.key)
    return new


def _add_links(span: Span, operation: Operation, sources: list[Source]) -> None:
    present = [
        OperationKey(link.trace_id.hex(), link.span_id.hex())
        for link in span.links
        if any(item.key == semconv.LINK_RELATION for item in link.attributes)
    ]
    parent_id = operation.parent_span_id
    parent = OperationKey(operation.trace_id, parent_id) if parent_id else None
    for link in missing_links(operation.key, parent, operation.step, present, sources):
        _append(span, link)


def _append(span: Span, link: Link) -> None:
    added = span.links.add(
        trace_id=bytes.fromhex(link.target.trace_id), span_id=bytes.fromhex(link.target.span_id)
    )
    attribute = added.attributes.add(key=semconv.LINK_RELATION)
    attribute.value.string_value = link.relation
