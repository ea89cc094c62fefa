"""Cached, batched reads for one walk, so that no key is asked for twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from memtrace_collector.graph import history
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.reader import GraphReader, Near
from memtrace_collector.graph.trace_tree import TraceTree

_Keyed = dict[tuple[str, str], list[Operation]]
_Read = Callable[[str, Collection[str]], Mapping[str, list[Operation]]]


class Lookups:
    """Lives as long as one question: what arrives meanwhile is not seen. ``near`` bounds who
    is found as a user of a record."""

    def __init__(self, reader: GraphReader, near: Near | None = None) -> None:
        self.reader = reader
        self._near = near
        self._operations: dict[OperationKey, Operation] = {}
        self._traces: dict[str, TraceTree] = {}
        self._producers: _Keyed = {}
        self._writers: _Keyed = {}
        self._record_users: _Keyed = {}
        self._histories: dict[tuple[str, str], tuple[Write, ...]] = {}

    def tree(self, trace_id: str) -> TraceTree:
        """Every memory operation of the trace."""
        tree = self._traces.get(trace_id)
        if tree is None:
            tree = self._traces[trace_id] = TraceTree(self.reader.trace_operations(trace_id))
            self._remember(tree.operations)
        return tree

    def operation(self, key: OperationKey, graph_ids: Iterable[str]) -> Operation | None:
        """The operation, when it is in one of these graphs (or in a trace already read)."""
        known = self._operations.get(key)
        for graph_id in () if known else graph_ids:
            found = self.reader.operations(graph_id, [key])
            if found:
                self._remember(found.values())
                return found[key]
        return known

    def producers(self, graph_id: str, refs: Iterable[str]) -> dict[str, list[Operation]]:
        return self._batched(self._producers, self.reader.producers, graph_id, refs)

    def writers(self, graph_id: str, records: Iterable[str]) -> dict[str, list[Operation]]:
        return self._batched(self._writers, self.reader.record_writers, graph_id, records)

    def record_users(self, graph_id: str, records: Iterable[str]) -> dict[str, list[Operation]]:
        return self._batched(self._record_users, self._users_near, graph_id, records)

    def history(self, graph_id: str, record: str) -> tuple[Write, ...]:
        """The writes of a record within one graph, in order."""
        key = (graph_id, record)
        if key not in self._histories:
            writers = self.writers(graph_id, [record]).get(record, [])
            readers: list[Operation] = []
            if history.has_ties(record, writers):
                readers = self.record_users(graph_id, [record]).get(record, [])
            self._histories[key] = history.order_writes(record, writers, readers)
        return self._histories[key]

    def _users_near(self, graph_id: str, records: Collection[str]) -> dict[str, list[Operation]]:
        return self.reader.record_users(graph_id, records, self._near)

    def _batched(
        self, cache: _Keyed, read: _Read, graph_id: str, names: Iterable[str]
    ) -> dict[str, list[Operation]]:
        wanted = set(names)
        unknown = {name for name in wanted if (graph_id, name) not in cache}
        if unknown:
            found = read(graph_id, unknown)
            for name in unknown:
                cache[graph_id, name] = self._remember(found.get(name, ()))
        return {name: cache[graph_id, name] for name in wanted if cache[graph_id, name]}

    def _remember(self, operations: Iterable[Operation]) -> list[Operation]:
        return [self._operations.setdefault(item.key, item) for item in operations]
