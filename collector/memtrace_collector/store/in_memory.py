"""A fact store in plain dictionaries: for tests, and for looking at one file without a folder.

It is the reference for what every other store must answer.
"""

from __future__ import annotations

import math
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable

from memtrace_collector.graph import content, fingerprint, merge
from memtrace_collector.graph.facts import (
    DEFAULT_TENANT,
    Flag,
    Operation,
    OperationKey,
    SpanFacts,
    Value,
    by_time,
)
from memtrace_collector.graph.reader import GraphSummary, Near, Run, SequenceNumber
from memtrace_collector.graph.references import acted_on, records_of, used_by
from memtrace_collector.graph.terms import Wanted, terms, wanted
from memtrace_collector.log.position import LogPosition
from memtrace_collector.store.base import Applied, Change, Changes, ErasedFacts

_START = LogPosition(0, 0)
_SCOPE_TERMS = 2
"""Terms that SQLite's index holds of every value beside its text: graph and kind."""
_Predicate = Callable[[Operation], bool]
_Keys = Callable[[Operation], Iterable[str]]


class InMemoryFactStore:
    """Implements :class:`~memtrace_collector.store.base.FactStore`, each tenant in an object."""

    def __init__(self, tenant: str = DEFAULT_TENANT) -> None:
        self.tenant = tenant
        self._tenants = {tenant: self}
        self._operations: dict[OperationKey, Operation] = {}
        self._positions: dict[OperationKey, LogPosition] = {}
        self._values: dict[tuple[str, str], Value] = {}
        self._value_times: dict[tuple[str, str], int] = {}
        self._flags: dict[str, Flag] = {}
        self._numbers: dict[tuple[str, int], SequenceNumber] = {}
        self._cursors: dict[str, LogPosition] = {}
        self._epoch = secrets.randbits(53)
        self._change = 0
        self._changed_flags: dict[str, int] = {}
        self._changed_graphs: dict[str, int] = {}

    @classmethod
    def of(cls, facts: Iterable[SpanFacts], tenant: str = DEFAULT_TENANT) -> InMemoryFactStore:
        """A store holding these facts."""
        store = cls(tenant)
        store.apply(((_START, item) for item in facts), _START)
        return store

    def for_tenant(self, tenant: str) -> InMemoryFactStore:
        if tenant not in self._tenants:
            store = self._tenants[tenant] = InMemoryFactStore(tenant)
            store._tenants, store._cursors = self._tenants, self._cursors
        return self._tenants[tenant]

    def apply(self, batch: Iterable[tuple[LogPosition, SpanFacts]], cursor: LogPosition) -> Applied:
        by_tenant: dict[str, list[tuple[LogPosition, SpanFacts]]] = defaultdict(list)
        for position, facts in batch:
            by_tenant[facts.tenant].append((position, facts))
        added: list[Operation] = []
        duplicates = conflicts = 0
        for tenant, items in by_tenant.items():
            applied = self.for_tenant(tenant)._apply(items)
            added.extend(applied.added)
            duplicates += applied.duplicates
            conflicts += applied.conflicts
        self._cursors["projection"] = cursor
        return Applied(tuple(added), duplicates, conflicts)

    def _apply(self, items: Iterable[tuple[LogPosition, SpanFacts]]) -> Applied:
        added: list[Operation] = []
        duplicates = conflicts = 0
        self._change += 1
        for position, facts in items:
            if facts.operation is not None:
                change = self._put_operation(position, facts.operation)
                if change == "new":
                    added.append(facts.operation)
                duplicates += change == "duplicate"
                conflicts += change == "conflict"
            self._put_rest(facts)
        return Applied(tuple(added), duplicates, conflicts)

    def erase(self, graph_id: str | None) -> ErasedFacts:
        gone = [item for item in self._operations.values() if graph_id in (None, item.graph_id)]
        values = [key for key in self._values if graph_id in (None, key[0])]
        targets = {target for item in gone for target in item.flag_targets}
        flags = [
            flag.origin
            for flag in self._flags.values()
            if graph_id in (None, flag.graph_id) or (not flag.graph_id and flag.target in targets)
        ]
        for item in gone:
            del self._operations[item.key], self._positions[item.key]
        for key in values:
            del self._values[key], self._value_times[key]
        for origin in flags:
            del self._flags[origin], self._changed_flags[origin]
        if graph_id is None:
            self._changed_graphs.clear()
            self._numbers.clear()
        else:
            self._changed_graphs.pop(graph_id, None)
        return ErasedFacts(len(gone), len(values), len(flags))

    def expire_values(self, before_ns: int) -> int:
        expired = 0
        for store in self._tenants.values():
            old = [key for key, at_ns in store._value_times.items() if at_ns < before_ns]
            for key in old:
                del store._values[key], store._value_times[key]
            expired += len(old)
        return expired

    def tidy(self, _seconds: float) -> bool:
        return False

    def _put_operation(self, position: LogPosition, operation: Operation) -> str:
        key = operation.key
        old = self._operations.get(key)
        self._positions[key] = min(position, self._positions.get(key, position))
        if operation.sequence is not None:
            number = SequenceNumber(*operation.sequence, operation.start_ns, operation.end_ns)
            self._put_number(number)
        if old is None:
            self._operations[key] = operation
            self._changed_graphs[operation.graph_id] = self._change
            return "new"
        if old.digest == operation.digest:
            return "duplicate"
        if merge.operation_wins(operation, old):
            self._operations[key] = operation
            for each in (old, operation):
                self._changed_graphs[each.graph_id] = self._change
        return "conflict"

    def _put_rest(self, facts: SpanFacts) -> None:
        at_ns = 0 if facts.operation is None else facts.operation.start_ns
        for value in facts.values:
            key = (value.graph_id, value.ref)
            old = self._values.get(key)
            if old is None or merge.value_wins(value, old):
                self._values[key] = value
            self._value_times[key] = max(at_ns, self._value_times.get(key, 0))
        for flag in facts.flags:
            known = self._flags.get(flag.origin)
            if known is None or merge.flag_wins(flag, known):
                self._flags[flag.origin] = flag
                self._changed_flags[flag.origin] = self._change
        if facts.farewell is not None:
            at = facts.farewell_ns
            self._put_number(SequenceNumber(*facts.farewell, at, at, farewell=True))

    def _put_number(self, number: SequenceNumber) -> None:
        key = (number.process, number.number)
        old = self._numbers.get(key)
        self._numbers[key] = number if old is None else merge.join_numbers(number, old)

    def cursor(self, name: str = "projection") -> LogPosition:
        return self._cursors.get(name, _START)

    def set_cursor(self, name: str, position: LogPosition) -> None:
        self._cursors[name] = position

    def first_position(self, keys: Iterable[OperationKey]) -> dict[OperationKey, LogPosition]:
        return {key: self._positions[key] for key in keys if key in self._positions}

    def graph_hash(self, graph_id: str) -> str:
        values = [value for (graph, _), value in self._values.items() if graph == graph_id]
        return fingerprint.graph_hash(self._of_graph(graph_id), values, self.flags(graph_id))

    def close(self) -> None:
        """Nothing to release."""

    def graphs(self) -> list[GraphSummary]:
        grouped: dict[str, list[Operation]] = defaultdict(list)
        for operation in self._operations.values():
            grouped[operation.graph_id].append(operation)
        return [
            GraphSummary(
                graph_id, len(items), min(o.start_ns for o in items), max(o.end_ns for o in items)
            )
            for graph_id, items in sorted(grouped.items())
        ]

    def operations(
        self, graph_id: str, keys: Collection[OperationKey]
    ) -> dict[OperationKey, Operation]:
        found = ((key, self._operations.get(key)) for key in keys)
        return {key: item for key, item in found if item and item.graph_id == graph_id}

    def all_operations(self, graph_id: str) -> list[Operation]:
        return self._of_graph(graph_id)

    def trace_operations(self, trace_id: str) -> list[Operation]:
        return self._where(lambda operation: operation.trace_id == trace_id)

    def trace_siblings(self, keys: Collection[OperationKey]) -> dict[OperationKey, str]:
        traces = {key.trace_id for key in keys}
        found = self._where(lambda operation: operation.trace_id in traces)
        return {item.key: item.graph_id for item in found if item.key not in keys}

    def size(self, graph_id: str) -> int:
        return len(self._of_graph(graph_id))

    def producers(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        wanted = set(refs)
        return self._grouped(graph_id, lambda operation: wanted.intersection(operation.outputs))

    def record_writers(self, graph_id: str, records: Collection[str]) -> dict[str, list[Operation]]:
        wanted = set(records)
        return self._grouped(
            graph_id, lambda operation: wanted.intersection(records_of(operation.outputs))
        )

    def users(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        wanted = set(refs)
        return self._grouped(graph_id, lambda operation: wanted.intersection(used_by(operation)))

    def record_users(
        self, graph_id: str, records: Collection[str], near: Near | None = None
    ) -> dict[str, list[Operation]]:
        wanted = set(records)
        found = self._grouped(
            graph_id, lambda operation: wanted.intersection(records_of(used_by(operation)))
        )
        return found if near is None else _bounded(found, near)

    def values(self, graph_id: str, refs: Collection[str]) -> dict[str, Value]:
        found = ((ref, self._values.get((graph_id, ref))) for ref in refs)
        return {ref: value for ref, value in found if value is not None}

    def search_values(
        self, graph_id: str, text: str, kinds: Collection[str] = (), limit: int = 20
    ) -> list[Value]:
        query = wanted(text, len(text))
        documents = {
            key: Counter(terms(content.plain_text(value))) for key, value in self._values.items()
        }
        lengths = {key: _SCOPE_TERMS + sum(counts.values()) for key, counts in documents.items()}
        average = sum(lengths.values()) / (len(lengths) or 1)
        found = {
            key: [_occurring(term, counts) for term in query] for key, counts in documents.items()
        }
        rarity = [_rarity(sum(map(bool, column)), len(found)) for column in zip(*found.values())]
        scored = []
        for (graph, ref), here in found.items():
            if graph != graph_id or (kinds and ref.partition(":")[0] not in kinds) or not any(here):
                continue
            norm = 1.2 * (0.25 + 0.75 * lengths[graph, ref] / average)
            score = sum(
                term.weight * rare * count * 2.2 / (count + norm)
                for term, rare, count in zip(query, rarity, here)
            )
            scored.append((-score, ref))
        return [self._values[graph_id, ref] for _, ref in sorted(scored)[:limit]]

    def sequence(self, processes: Collection[str]) -> dict[str, list[SequenceNumber]]:
        found: dict[str, list[SequenceNumber]] = defaultdict(list)
        for (process, _), number in sorted(self._numbers.items()):
            if process in processes:
                found[process].append(number)
        return dict(found)

    def runs(self, processes: Collection[str]) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = {}
        for process, numbers in self.sequence(processes).items():
            runs = found[process] = [Run(numbers[0], numbers[0])]
            for number in numbers[1:]:
                last = runs[-1].last
                if last.farewell or number.number > last.number + 1:
                    runs.append(Run(number, number))
                else:
                    runs[-1] = runs[-1]._replace(last=number)
        return found

    def flags(self, graph_id: str | None = None) -> list[Flag]:
        flags = self._flags.values()
        return sorted(
            (flag for flag in flags if graph_id is None or flag.graph_id == graph_id),
            key=lambda flag: (flag.at_ns, flag.origin),
        )

    def flags_at(self, targets: Collection[str]) -> list[Flag]:
        wanted = set(targets)
        return [flag for flag in self.flags() if flag.target in wanted]

    def changes(self, since: Change | None, limit: int = 1_000) -> Changes:
        after = since.number if since is not None and since.epoch == self._epoch else -1
        flags = _changed_after(self._changed_flags, after)
        graphs = _changed_after(self._changed_graphs, after)
        ends = [items[limit - 1][0] for items in (flags, graphs) if len(items) >= limit]
        until = min([self._change, *ends])
        return Changes(
            flags=tuple(self._flags[origin] for number, origin in flags if number <= until),
            graph_ids=tuple(graph_id for number, graph_id in graphs if number <= until),
            until=Change(self._epoch, until),
            is_all=until == self._change,
        )

    def flag_counts(self) -> dict[str, int]:
        return dict(Counter(flag.source for flag in self._flags.values()))

    def response_operations(self, response_id: str) -> list[Operation]:
        return self._where(lambda operation: operation.response_id == response_id != "")

    def conversation_operations(self, conversation_id: str) -> list[Operation]:
        return self._where(lambda operation: operation.conversation_id == conversation_id != "")

    def _of_graph(self, graph_id: str) -> list[Operation]:
        return self._where(lambda operation: operation.graph_id == graph_id)

    def _where(self, keep: _Predicate) -> list[Operation]:
        return sorted((item for item in self._operations.values() if keep(item)), key=by_time)

    def _grouped(self, graph_id: str, keys_of: _Keys) -> dict[str, list[Operation]]:
        grouped: dict[str, list[Operation]] = defaultdict(list)
        for operation in self._of_graph(graph_id):
            for key in keys_of(operation):
                grouped[key].append(operation)
        return dict(grouped)


def _changed_after(changed: dict[str, int], after: int) -> list[tuple[int, str]]:
    return sorted((number, name) for name, number in changed.items() if number > after)


def _bounded(users: dict[str, list[Operation]], near: Near) -> dict[str, list[Operation]]:
    """Per record: which operations by acting on it, which by where they stand in time."""
    kept: dict[str, list[Operation]] = {}
    for record, operations in users.items():
        met = [item for item in operations if record not in records_of(acted_on(item))]
        earlier = sum(item.start_ns <= near.at_ns for item in met)
        cut = {
            item.key
            for place, item in enumerate(met, 1)
            if place > near.first and not earlier - near.before < place <= earlier + near.after
        }
        left = [item for item in operations if item.key not in cut]
        if left:
            kept[record] = left
    return kept


def _rarity(having: int, of: int) -> float:
    """The weight of a term in BM25 as SQLite's FTS5 computes it."""
    return max(1e-6, math.log((of - having + 0.5) / (having + 0.5)))


def _occurring(term: Wanted, counts: Counter[str]) -> int:
    if not term.open:
        return counts[term.lead]
    return sum(count for word, count in counts.items() if word.startswith(term.lead))
