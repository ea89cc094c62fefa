"""Cached, batched reads for one walk, so that no key is asked for twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain

from memtrace_collector.graph import history
from memtrace_collector.graph.case import Write
from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.reader import GraphReader, Near
from memtrace_collector.graph.trace_tree import TraceTree

_LARGEST_WHOLE = 20_000
"""A graph of more operations is never read whole."""
_WORTH_READING = 0.5
"""What finding an operation by a reference costs, beside reading it where it lies. A graph is read
whole once so much was spent on asking it; a walk whose every step finds one asks for long."""
_LEAST_ASKED = 512
"""Before, not even the size of the graph is asked for."""
_CALL = 18
"""What asking costs, whatever is asked for, in references."""
_NONE: list[Operation] = []
_Found = dict[str, list[Operation]]
_Read = Callable[[str, Collection[str]], Mapping[str, list[Operation]]]


class Lookups:
    """Lives as long as one question: what arrives meanwhile is not seen. ``near`` bounds who
    is found as a user of a record."""

    def __init__(self, reader: GraphReader, near: Near | None = None) -> None:
        self.reader = reader
        self._near = near
        self._operations: dict[OperationKey, Operation] = {}
        self._absent: set[tuple[str, OperationKey]] = set()
        self._traces: dict[str, Sequence[Operation]] = {}
        self._trees: dict[str, TraceTree] = {}
        self._producers: dict[str, _Found] = defaultdict(dict)
        self._only: dict[str, dict[str, OperationKey]] = defaultdict(dict)
        self._writers: dict[str, _Found] = defaultdict(dict)
        self._record_users: dict[str, _Found] = defaultdict(dict)
        self._histories: dict[tuple[str, str], tuple[Write, ...]] = {}
        self._asked: dict[str, int] = defaultdict(int)
        self._sizes: dict[str, int] = {}
        self._whole: set[str] = set()

    def tree(self, trace_id: str) -> TraceTree:
        """Every memory operation of the trace."""
        tree = self._trees.get(trace_id)
        if tree is None:
            held = self._traces.get(trace_id)
            operations = self.reader.trace_operations(trace_id) if held is None else held
            tree = self._trees[trace_id] = TraceTree(self._remember(operations))
            self._traces[trace_id] = tree.operations
        return tree

    def is_alone(self, trace_id: str) -> bool:
        """Is a single operation known of this trace, which was read?"""
        return len(self._traces[trace_id]) < 2

    def read_traces(self, operations: Iterable[Operation]) -> None:
        """Read the traces of these operations at once."""
        unread = {item.trace_id: item for item in operations if item.trace_id not in self._traces}
        if not unread:
            return
        others = self.reader.trace_siblings({item.key for item in unread.values()})
        self._traces.update({trace_id: (item,) for trace_id, item in unread.items()})
        if others:
            self.read_operations({key: (graph_id,) for key, graph_id in others.items()})
        for key in others:
            if key in self._operations:
                self._traces[key.trace_id] = (*self._traces[key.trace_id], self._operations[key])

    def operation(self, key: OperationKey, graph_ids: tuple[str, ...]) -> Operation | None:
        """The operation, when it is in one of these graphs or was read before."""
        if key not in self._operations:
            self.read_operations({key: graph_ids})
        return self._operations.get(key)

    def known(self, key: OperationKey) -> Operation:
        """An operation that was read."""
        return self._operations[key]

    def producers(self, graph_id: str, refs: Collection[str]) -> _Found:
        self.read_producers(graph_id, refs)
        known = self._producers[graph_id]
        return {ref: known[ref] for ref in refs if known.get(ref)}

    def only_producers(self, graph_id: str) -> Mapping[str, OperationKey]:
        """Of the references read so far, those that a single operation of the graph produced."""
        return self._only[graph_id]

    def is_whole(self, graph_id: str) -> bool:
        """Is every operation of the graph known, with its trace?"""
        return graph_id in self._whole

    def read_producers(self, graph_id: str, refs: Iterable[str]) -> None:
        """Read who produced these references, at once."""
        known = self._producers[graph_id]
        unknown = () if graph_id in self._whole else set(refs).difference(known)
        if not unknown:
            return
        if self._is_worth_reading(graph_id, len(unknown)):
            self._read_whole(graph_id)
            return
        found = self.reader.producers(graph_id, unknown)
        keys = self._take(known, unknown, found)
        self._only[graph_id].update(
            {ref: keys[id(made[0])] for ref, made in found.items() if len(made) == 1}
        )

    def writers(self, graph_id: str, records: Collection[str]) -> _Found:
        return self._batched(self._writers, self.reader.record_writers, graph_id, records)

    def record_users(self, graph_id: str, records: Collection[str]) -> _Found:
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

    def _users_near(self, graph_id: str, records: Collection[str]) -> Mapping[str, list[Operation]]:
        return self.reader.record_users(graph_id, records, self._near)

    def _batched(
        self, cache: dict[str, _Found], read: _Read, graph_id: str, names: Collection[str]
    ) -> _Found:
        known = cache[graph_id]
        unknown = {name for name in names if name not in known}
        if unknown:
            self._take(known, unknown, read(graph_id, unknown))
        return {name: known[name] for name in names if known[name]}

    def _take(
        self, known: _Found, asked: set[str], found: Mapping[str, list[Operation]]
    ) -> dict[int, OperationKey]:
        """Keep what was found; the keys of its operations by their ``id()``."""
        keys: dict[int, OperationKey] = {}
        known_before: dict[int, Operation] = {}
        for operation in chain.from_iterable(found.values()):
            if id(operation) not in keys:
                key = operation.key
                kept = self._operations.setdefault(key, operation)
                keys[id(operation)] = keys[id(kept)] = key
                if kept is not operation:
                    known_before[id(operation)] = kept
        known.update(found)
        if known_before:
            for name, operations in found.items():
                known[name] = [known_before.get(id(item), item) for item in operations]
        known.update(dict.fromkeys(asked - found.keys(), _NONE))
        return keys

    def read_operations(self, wanted: Mapping[OperationKey, tuple[str, ...]]) -> None:
        """Read operations at once, each from the first of its graphs that holds it."""
        unknown = [key for key in wanted if key not in self._operations]
        depth = 0
        while unknown:
            by_graph: dict[str, list[OperationKey]] = defaultdict(list)
            for key in unknown:
                for graph_id in wanted[key][depth : depth + 1]:
                    by_graph[graph_id].append(key)
            for graph_id, keys in by_graph.items():
                self._read_from(graph_id, keys)
            depth += 1
            unknown = [
                key for key in unknown if key not in self._operations and depth < len(wanted[key])
            ]

    def _read_from(self, graph_id: str, keys: Iterable[OperationKey]) -> None:
        fresh = {key for key in keys if (graph_id, key) not in self._absent}
        if graph_id in self._whole or not fresh:
            return
        found = self.reader.operations(graph_id, fresh)
        self._remember(found.values())
        self._absent.update((graph_id, key) for key in fresh if key not in found)

    def _is_worth_reading(self, graph_id: str, references: int) -> bool:
        self._asked[graph_id] += references + _CALL
        asked = self._asked[graph_id] * _WORTH_READING
        if asked < _LEAST_ASKED:
            return False
        size = self._sizes.get(graph_id)
        if size is None:
            size = self._sizes[graph_id] = self.reader.size(graph_id)
        return size <= min(asked, _LARGEST_WHOLE)

    def _read_whole(self, graph_id: str) -> None:
        known: _Found = {}
        operations = self._remember(self.reader.all_operations(graph_id))
        for operation in operations:
            for ref in dict.fromkeys(operation.outputs):
                known.setdefault(ref, []).append(operation)
        self._producers[graph_id] = known
        self._only[graph_id] = {ref: made[0].key for ref, made in known.items() if len(made) == 1}
        self._whole.add(graph_id)
        self.read_traces(operations)

    def _remember(self, operations: Iterable[Operation]) -> list[Operation]:
        return [self._operations.setdefault(item.key, item) for item in operations]
