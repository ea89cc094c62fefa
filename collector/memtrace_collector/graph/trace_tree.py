"""The span tree of one trace, as far as its memory operations show it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memtrace_collector.graph.facts import Operation


class TraceTree:
    """Operations of one trace by start, and who encloses whom.

    Spans that are no memory operations are unknown: a chain ends at the first unknown parent,
    which siblings still share.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.operations = sorted(operations, key=lambda o: (o.start_ns, o.span_id))
        self._by_span = {operation.span_id: operation for operation in self.operations}
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

    def encloses(self, outer: Operation, inner: Operation) -> bool:
        """Is ``outer`` a proper ancestor span of ``inner``?"""
        return outer.span_id != inner.span_id and outer.span_id in self.chain(inner.span_id)

    def common_depth(self, one: Operation, other: Operation) -> int:
        """How many enclosing spans the two share: the greater, the deeper their common one."""
        inner = set(self.chain(other.span_id))
        return sum(span in inner for span in self.chain(one.span_id))

    def innermost(self, operations: Sequence[Operation]) -> list[Operation]:
        """Without those that enclose another of them."""
        return [
            outer
            for outer in operations
            if not any(self.encloses(outer, inner) for inner in operations)
        ]
