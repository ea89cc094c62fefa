"""What of the log an order to erase is about. Pure but for the reading of the log.

Of a trace in which only the erased graph has operations every span goes, for the other spans
hold what was asked and answered; of any other trace only the graph's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from memtrace_collector.dialects import attributes, evaluation, registry
from memtrace_collector.dialects.attributes import Source
from memtrace_collector.graph.facts import Operation, SpanFacts
from memtrace_collector.log.control import Erase, carried_out, read_erase
from memtrace_collector.log.format import LogRecord, Signal
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import Entry, read
from memtrace_collector.otlp.blanking import blank_all, blank_json, blank_protobuf
from memtrace_collector.processor.quarantine import BAD_DATA
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.receiver.decode import InvalidRequestError, decode
from memtrace_otel import semconv

_ReadFacts: TypeAlias = Callable[[Any, Source], SpanFacts | None]


class Targets(Protocol):
    """Who else is in a trace, response or conversation: the part of a fact store needed here."""

    def trace_operations(self, trace_id: str) -> list[Operation]: ...
    def response_operations(self, response_id: str) -> list[Operation]: ...
    def conversation_operations(self, conversation_id: str) -> list[Operation]: ...


class Element(NamedTuple):
    """A span or log record of a request, and what it says (None: nothing to us)."""

    trace_id: str
    facts: SpanFacts | None
    graph_id: str
    """As its attribute says, also where it cannot be read otherwise."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """What goes: of ``order``, everything before ``until``.

    ``targets``: the :attr:`~memtrace_collector.graph.facts.Flag.target` of what is only the
    graph's, whole traces among them.
    """

    order: Erase
    until: LogPosition
    targets: frozenset[str] = frozenset()

    def goes(self, element: Element) -> bool:
        graph_id = self.order.graph_id
        if not graph_id or element.graph_id == graph_id:
            return True
        if f"trace:{element.trace_id}" in self.targets:
            return True
        return element.facts is not None and self._is_about(element.facts)

    def _is_about(self, facts: SpanFacts) -> bool:
        graph_id = self.order.graph_id
        if facts.operation is not None and facts.operation.graph_id == graph_id:
            return True
        if any(value.graph_id == graph_id for value in facts.values):
            return True
        return any(
            flag.graph_id == graph_id or (not flag.graph_id and flag.target in self.targets)
            for flag in facts.flags
        )

    def concerns(self, entry: Entry) -> bool:
        """Is the record before the order, and of its tenant?"""
        return entry.position < self.until and entry.record.tenant == self.order.tenant

    def change(self, entry: Entry) -> LogRecord | None:
        """The record without what goes, as long as before; None where nothing of it goes."""
        if not self.concerns(entry):
            return None
        record = entry.record
        if record.signal == "control":
            return self._finished(record)
        body = self._changed_body(record)
        if body is None or body == record.body:
            return None
        return LogRecord(record.tenant, record.time_ns, record.signal, record.encoding, body)

    def _finished(self, record: LogRecord) -> LogRecord | None:
        """An earlier order over the same, which this one carries out with it."""
        earlier = read_erase(record)
        if earlier is None or (self.order.graph_id and earlier.graph_id != self.order.graph_id):
            return None
        return carried_out(record, earlier)

    def _changed_body(self, record: LogRecord) -> bytes | None:
        if not self.order.graph_id:
            return blank_all(record.body, record.encoding)
        try:
            found = list(elements(record))
        except InvalidRequestError:
            named = self.order.graph_id.encode() in record.body
            return blank_all(record.body, record.encoding) if named else None
        going = {number for number, element in enumerate(found) if self.goes(element)}
        if not going:
            return None
        if record.encoding == "protobuf":
            return blank_protobuf(record.body, going.__contains__)
        signal: Signal = "traces" if record.signal == "traces" else "logs"
        return blank_json(record.body, signal, going.__contains__)


class Named(NamedTuple):
    """What the log holds of a graph: its targets, and texts by which it can be found again."""

    targets: frozenset[str]
    texts: frozenset[str]


def find(folder: Path, reader: RecordReader, doomed: Doomed, max_texts: int) -> Named:
    """Read the log for what an order is about. ``texts``: references and values, so many."""
    targets: set[str] = set()
    texts: set[str] = set()
    for entry in read(folder, START):
        if entry.position >= doomed.until:
            break
        if not doomed.concerns(entry) or entry.record.signal == "control":
            continue
        for facts in _facts(reader, entry.record):
            if doomed.goes(Element("", facts, "")):
                targets.update(facts.operation.flag_targets if facts.operation else ())
                if len(texts) < max_texts:
                    texts.update(_texts(facts))
    return Named(frozenset(targets), frozenset(texts))


def only_of(graph_id: str, targets: Iterable[str], others: Targets) -> frozenset[str]:
    """The targets in which no other graph has operations."""
    return frozenset(
        target
        for target in targets
        if all(operation.graph_id == graph_id for operation in _operations_at(target, others))
    )


def elements(record: LogRecord) -> Iterator[Element]:
    """Every span or log record of a request, in its order, those that were refused included.

    Raises:
        InvalidRequestError: not the request that it should be.
    """
    if record.signal == "traces":
        request = decode("traces", record.encoding, record.body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                source = _source(record, resource, scope)
                for span in scope.spans:
                    yield _element(span, source, registry.read_span)
    elif record.signal == "logs":
        request = decode("logs", record.encoding, record.body)
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                source = _source(record, resource, scope)
                for item in scope.log_records:
                    yield _element(item, source, evaluation.read_log)


def _element(item: Any, source: Source, read_facts: _ReadFacts) -> Element:
    facts = None
    with contextlib.suppress(*BAD_DATA):  # it was quarantined: the attribute says whose it is
        facts = read_facts(item, source)
    named = next(
        (a.value.string_value for a in item.attributes if a.key == semconv.MEMTRACE_GRAPH_ID), ""
    )
    return Element(item.trace_id.hex(), facts, named)


def _source(record: LogRecord, resource: Any, scope: Any) -> Source:
    return Source(record.tenant, attributes.decode(resource.resource.attributes), scope.scope.name)


def _facts(reader: RecordReader, record: LogRecord) -> Iterable[SpanFacts]:
    try:
        return reader.facts(record)
    except InvalidRequestError:
        return ()


def _texts(facts: SpanFacts) -> Iterator[str]:
    if facts.operation is not None:
        yield from facts.operation.outputs
    for value in facts.values:
        yield value.ref
        if isinstance(value.content, str):
            yield value.content


def _operations_at(target: str, others: Targets) -> list[Operation]:
    kind, _, name = target.partition(":")
    if kind == "trace":
        return others.trace_operations(name)
    if kind == "response":
        return others.response_operations(name)
    return others.conversation_operations(name)
