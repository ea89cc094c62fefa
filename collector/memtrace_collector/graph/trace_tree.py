"""The span tree of one trace, as far as its memory operations show it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.references import writes_record, written_records
from memtrace_otel import variables


class TraceTree:
    """Operations of one trace by start, and who encloses whom.

    Spans that are no memory operations are unknown: a chain ends at the first unknown parent,
    which siblings still share.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.operations = sorted(operations, key=lambda o: (o.start_ns, o.span_id))
        self._chains: dict[str, tuple[str, ...]] = {}

    def chain(self, span_id: str) -> tuple[str, ...]:
        """The span, its parent, and so on outwards."""
        known = self._chains.get(span_id)
        if known is not None:
            return known
        spans: dict[str, None] = {}
        current = span_id
        while current and current not in spans:
            spans[current] = None
            operation = self._by_span.get(current)
            current = operation.parent_span_id if operation else ""
        chain = tuple(spans)
        self._chains[span_id] = chain
        return chain

    @cached_property
    def _by_span(self) -> dict[str, Operation]:
        return {operation.span_id: operation for operation in self.operations}

    @cached_property
    def _parents(self) -> set[str]:
        return {operation.parent_span_id for operation in self.operations}

    @cached_property
    def _deliveries(self) -> dict[str, list[Operation]]:
        return _by_name(self.operations, _delivered_names)

    @cached_property
    def _deciders(self) -> dict[str, list[Operation]]:
        return _by_name(self.operations, _decided_names)

    @cached_property
    def _writes(self) -> dict[str, list[Operation]]:
        return _by_name(self.operations, _write_names)

    def delivering(self, name: str) -> list[Operation]:
        """Operations that delivered a reference, or any version of a record (``kind:id``)."""
        return self._deliveries.get(name, [])

    def deciders_for(self, write: Operation) -> list[Operation]:
        """Decisions that share a fact, a record or only the parent span with a write."""
        return _found(self._deciders, _write_names(write))

    def writes_for(self, decider: Operation) -> list[Operation]:
        """The inverse of :meth:`deciders_for`."""
        return _found(self._writes, _decided_names(decider))

    def enclosing(self, operation: Operation) -> list[Operation]:
        """The operations around this one, innermost first."""
        around = self.chain(operation.span_id)[1:]
        return [self._by_span[span_id] for span_id in around if span_id in self._by_span]

    def is_leaf(self, operation: Operation) -> bool:
        """No memory operation runs directly inside it."""
        return operation.span_id not in self._parents

    def encloses(self, outer: Operation, inner: Operation) -> bool:
        """Is ``outer`` a proper ancestor span of ``inner``?"""
        return outer.span_id != inner.span_id and outer.span_id in self.chain(inner.span_id)

    def common_depth(self, one: Operation, other: Operation) -> int:
        """How many enclosing spans the two share: the greater, the deeper their common one."""
        inner = set(self.chain(other.span_id))
        return sum(span in inner for span in self.chain(one.span_id))

    def innermost(self, operations: Sequence[Operation]) -> list[Operation]:
        """Without those that enclose another of them."""
        outer = {span for item in operations for span in self.chain(item.span_id)[1:]}
        return [item for item in operations if item.span_id not in outer]


def _by_name(
    operations: Iterable[Operation], names_of: Callable[[Operation], set[str]]
) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        for name in names_of(operation):
            found.setdefault(name, []).append(operation)
    return found


def _found(index: dict[str, list[Operation]], names: Iterable[str]) -> list[Operation]:
    found = {item.key: item for name in names for item in index.get(name, ())}
    return sorted(found.values(), key=lambda item: (item.start_ns, item.span_id))


def _delivered_names(operation: Operation) -> set[str]:
    # by record as well: a version nobody could see is looked up by its record
    return {*operation.delivered, *map(variables.record_of, operation.delivered)}


def _decided_names(operation: Operation) -> set[str]:
    if operation.composite or not operation.decisions:
        return set()
    names = set(operation.outputs)
    for decision in operation.decisions:
        if decision.fact is not None:
            names.add(decision.fact)
        if decision.target is not None:
            names.add(variables.record_of(decision.target))
        if decision.fact is None and decision.target is None:
            names.add(f"parent {operation.parent_span_id}")
    return names


def _write_names(operation: Operation) -> set[str]:
    if not writes_record(operation):
        return set()
    parent = f"parent {operation.parent_span_id}"
    return {parent, *operation.inputs, *written_records(operation)}
