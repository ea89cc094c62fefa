"""What of a log record goes on to a destination, and in which form."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.sources import Source, resolve_sources
from memtrace_collector.log.format import LogRecord, Signal
from memtrace_collector.log.position import LogPosition
from memtrace_collector.otlp.blanking import is_blank
from memtrace_collector.otlp.halving import without_empty
from memtrace_collector.otlp.identity import has_valid_ids
from memtrace_collector.otlp.slices import Slices, split
from memtrace_collector.processor.links import Link, missing_links
from memtrace_collector.processor.parcels import Payload
from memtrace_collector.processor.quarantine import BAD_DATA
from memtrace_collector.processor.reading import Ours, RecordReader, sliced_request
from memtrace_collector.processor.redaction import remove_content, remove_log_content
from memtrace_collector.processor.shortening import NAME_BYTES, shorten
from memtrace_collector.receiver.decode import decode_logs, decode_traces
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_otel import semconv

logger = logging.getLogger(__name__)

_Sources = Mapping[OperationKey, list[Source]]


class ForwardStore(GraphReader, Protocol):
    """The part of :class:`~memtrace_collector.store.base.FactStore` that is needed here."""

    def for_tenant(self, tenant: str, /) -> ForwardStore: ...

    def first_position(self, keys: Iterable[OperationKey]) -> dict[OperationKey, LogPosition]: ...

    def cursor(self, name: str = "projection") -> LogPosition: ...


class _Scope(NamedTuple):
    """The spans of one scope of a request, and those of them that are ours."""

    slices: Slices
    ours: list[Ours]


class Outgoing:
    """Prepares records: repeated operations left out, links completed, content removed, texts
    shortened.

    Args:
        values: send content on as well.
        encodings: what the destination takes.
        longest_text: bytes of a text in a span that it takes; None: any.
    """

    def __init__(
        self,
        store: ForwardStore,
        reader: RecordReader,
        *,
        encodings: Collection[str],
        values: bool = False,
        longest_text: int | None = None,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        self._store = store
        self._reader = reader
        self._encodings = encodings
        self._values = values
        self._longest_text = longest_text
        self._metrics = metrics

    def prepare(self, position: LogPosition, record: LogRecord) -> Payload | None:
        """What to send of the record at ``position``; None when nothing is left to send.

        A record without anything of ours passes byte for byte, unless the destination does not
        take its encoding. Beside ours, other spans are not decoded and stay as they are.

        Raises:
            InvalidRequestError: the record cannot be read, so nothing can be taken off it.
        """
        payload = self._completed(position, record)
        longest = self._longest_text
        if payload is None or payload.signal != "traces" or longest is None:
            return payload
        return self._shortened(payload, longest)

    def _shortened(self, payload: Payload, longest: int) -> Payload:
        if len(payload.body) <= NAME_BYTES:
            return payload
        binary = payload.as_protobuf()
        try:
            body, count = shorten(binary.body, longest)
        except DecodeError:
            return payload  # others' spans that nobody read; the destination refuses them for good
        if not count:
            return payload
        self._metrics.add("memtrace.forward.shortened", count)
        return binary._replace(body=body)

    def _completed(self, position: LogPosition, record: LogRecord) -> Payload | None:
        """What to send of a record, at its length."""
        if record.signal == "control" or is_blank(record.body, record.encoding):
            return None
        if not self._reader.concerns_us(record):
            return self._unchanged(record)
        if record.signal == "logs":
            return self._logs(record)
        request = sliced_request(record)
        scopes = [
            _Scope(slices, list(self._reader.spans(record.tenant, slices)))
            for slices in split(request)
        ]
        operations = [
            ours.facts.operation
            for scope in scopes
            for ours in scope.ours
            if ours.facts.operation is not None
        ]
        if not any(scope.ours for scope in scopes):
            return self._unchanged(record)
        store = self._store.for_tenant(record.tenant)
        seen = self._repeated(store, position, operations)
        sources = self._sources(store, [item for item in operations if item.key not in seen])
        if not sum([self._rewrite(scope, seen, sources) for scope in scopes]):
            return None
        without_empty(request)
        return Payload("traces", bytes(request.SerializeToString()), "protobuf")

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
        return Payload("logs", bytes(request.SerializeToString()), "protobuf")

    def _unchanged(self, record: LogRecord) -> Payload:
        signal: Signal = "logs" if record.signal == "logs" else "traces"
        if record.encoding in self._encodings:
            return Payload(signal, record.body, record.encoding)
        decode = decode_traces if signal == "traces" else decode_logs
        return Payload(signal, bytes(decode(record).SerializeToString()), "protobuf")

    def _repeated(
        self, store: ForwardStore, position: LogPosition, operations: list[Operation]
    ) -> set[OperationKey]:
        """Operations whose first copy is another record: that one goes on."""
        keys = [operation.key for operation in operations]
        first = store.first_position(keys)
        return {key for key in keys if first.get(key, position) != position}

    def _sources(self, store: ForwardStore, operations: list[Operation]) -> _Sources:
        try:
            return resolve_sources(store, operations)
        except BAD_DATA:
            self._metrics.add("memtrace.forward.links_failed", len(operations))
            logger.exception("links could not be completed; the spans go on without")
            return {}

    def _rewrite(self, scope: _Scope, seen: set[OperationKey], sources: _Sources) -> int:
        """Change a scope in place; the number of spans that stay. ``seen`` grows."""
        spans = scope.slices.spans
        repeated = set()
        for place, data, facts in scope.ours:
            operation = facts.operation
            if operation is not None and operation.key in seen:
                repeated.add(place)
                continue
            if operation is not None:
                seen.add(operation.key)
            behind = [] if operation is None else sources.get(operation.key, [])
            rewritten = self._rewritten(data, operation, behind)
            if rewritten is not None:
                spans[place] = rewritten
        if repeated:
            self._metrics.add("memtrace.forward.repeated", len(repeated))
        kept = [
            data
            for place, data in enumerate(spans)
            if place not in repeated and has_valid_ids(data)
        ]
        if len(kept) != len(spans):
            del spans[:]
            spans.extend(kept)
        return len(kept)

    def _rewritten(
        self, data: bytes, operation: Operation | None, behind: list[Source]
    ) -> bytes | None:
        """The span as it goes on; None when it goes on as it is."""
        span = Span.FromString(data)
        changed = not self._values and remove_content(span)
        if operation is not None and _add_links(span, operation, behind):
            changed = True
        return span.SerializeToString() if changed else None


def _add_links(span: Span, operation: Operation, sources: list[Source]) -> bool:
    """Complete the span's links; False when there was nothing to add."""
    if not sources:
        return False
    present = [
        OperationKey(link.trace_id.hex(), link.span_id.hex())
        for link in span.links
        if any(item.key == semconv.LINK_RELATION for item in link.attributes)
    ]
    parent_id = operation.parent_span_id
    parent = OperationKey(operation.trace_id, parent_id) if parent_id else None
    links = missing_links(operation.key, parent, operation.step, present, sources)
    for link in links:
        _append(span, link)
    return bool(links)


def _append(span: Span, link: Link) -> None:
    added = span.links.add(
        trace_id=bytes.fromhex(link.target.trace_id), span_id=bytes.fromhex(link.target.span_id)
    )
    attribute = added.attributes.add(key=semconv.LINK_RELATION)
    attribute.value.string_value = link.relation
