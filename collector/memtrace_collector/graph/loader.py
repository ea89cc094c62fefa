"""Load the case of an answer: the part of the graphs that bears on one failure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from memtrace_collector.graph import content, evidence, resolution
from memtrace_collector.graph.ancestry import Ancestry, ancestry, merge_parents, parents_of
from memtrace_collector.graph.case import Case, Write
from memtrace_collector.graph.closure import closure, processes_of
from memtrace_collector.graph.evidence import Evidence
from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Value
from memtrace_collector.graph.forward import downstream
from memtrace_collector.graph.history import order_writes
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.references import named_by
from memtrace_collector.graph.turns import turn
from memtrace_otel import semconv, variables

MAX_OPERATIONS = 20_000
_WHOLE_TRACE = 300
"""A trace of at most so many operations is loaded whole; of a longer one, what is met."""
_RECORDS = (f"{semconv.KIND_MEMORY}:", f"{semconv.KIND_DOCUMENT}:")
_Operations = dict[OperationKey, Operation]


def load_case(
    reader: GraphReader,
    answer: Operation,
    flag: Flag,
    *,
    evidence_given: bool = True,
    max_operations: int = MAX_OPERATIONS,
) -> Case:
    """Everything attribution may look at.

    Args:
        reader: the tenant's graphs.
        answer: the flagged answer.
        flag: why it is flagged; its evidence is used when there is any.
        evidence_given: False ignores the flag's evidence and searches for it.
        max_operations: where walks stop; the lineage is then ``incomplete``.
    """
    lookups = Lookups(reader)
    back = ancestry(lookups, answer, max_operations)
    own_turn = turn(lookups, answer, back.operations)
    readable = _readable((*back.operations.values(), *own_turn.values()))
    given = evidence_given and bool(flag.evidence)
    if given:
        found = evidence.locate(lookups, flag.evidence, answer, readable)
    else:
        text = evidence.question_text(lookups, tuple(own_turn.values()), flag)
        found = evidence.search(lookups, text, answer, readable, back.operations)
    walk = _Walk(lookups, answer, readable, max_operations)
    operations, histories = walk.operations(back, own_turn, found)
    values, texts = _values(reader, operations.values(), found.refs)
    status = resolution.INCOMPLETE if walk.truncated else back.status
    return Case(
        answer=answer,
        flag=flag,
        operations=operations,
        ancestry=frozenset(back.operations),
        parents=merge_parents(back.parents, walk.parents(operations)),
        histories=histories,
        values=values,
        texts=texts,
        turn=frozenset(own_turn),
        evidence=found.refs,
        evidence_given=given,
        closure=closure(reader, processes_of(operations.values())),
        lineage=status,
        readable_graphs=frozenset(readable),
        foreign=found.foreign,
    )


@dataclass(slots=True)
class _Walk:
    """Collects the operations of a case, from the certain to the merely related."""

    lookups: Lookups
    answer: Operation
    graph_ids: Sequence[str]
    max_operations: int
    truncated: bool = False

    def operations(
        self, back: Ancestry, own_turn: _Operations, found: Evidence
    ) -> tuple[_Operations, dict[str, tuple[Write, ...]]]:
        graph_ids = tuple(dict.fromkeys((*self.graph_ids, *found.foreign.values())))
        operations = dict(back.operations) | own_turn
        self.truncated = back.truncated
        ahead = downstream(self.lookups, found.occurrences, graph_ids, self.max_operations)
        self.truncated |= ahead.truncated
        self._add(operations, ahead.operations.values())
        self._add_traces(operations)
        records = _records(operations.values())
        writers = self._writers(records, graph_ids)
        self._add(operations, (item for items in writers.values() for item in items))
        readers = self._readers(records, graph_ids)
        self._add(operations, (item for items in readers.values() for item in items))
        self._add_traces(operations, (item for items in writers.values() for item in items))
        histories = {
            record: order_writes(record, items, readers.get(record, ()))
            for record, items in writers.items()
        }
        return operations, histories

    def parents(self, operations: _Operations) -> dict[OperationKey, tuple[OperationKey, ...]]:
        """One step back from every operation of the case, inside the case."""
        found = parents_of(self.lookups, operations.values())
        inside = {
            key: tuple(parent for parent in parents if parent in operations)
            for key, parents in found.items()
        }
        return {key: parents for key, parents in inside.items() if parents}

    def _add(self, operations: _Operations, more: Iterable[Operation]) -> None:
        for operation in more:
            if operation.key in operations:
                continue
            if len(operations) >= self.max_operations:
                self.truncated = True
                return
            operations[operation.key] = operation

    def _add_traces(
        self, operations: _Operations, within: Iterable[Operation] | None = None
    ) -> None:
        """Siblings of what was met: decisions that chose nothing, writes that failed."""
        around = operations.values() if within is None else within
        for trace_id in sorted({item.trace_id for item in around}):
            siblings = self.lookups.tree(trace_id).operations
            if len(siblings) <= _WHOLE_TRACE:
                self._add(operations, siblings)
            else:
                parents = {item.parent_span_id for item in operations.values()} - {""}
                self._add(operations, (s for s in siblings if s.parent_span_id in parents))

    def _writers(
        self, records: Collection[str], graph_ids: Sequence[str]
    ) -> dict[str, list[Operation]]:
        found: dict[str, list[Operation]] = defaultdict(list)
        for graph_id in graph_ids:
            for record, items in self.lookups.writers(graph_id, records).items():
                found[record].extend(items)
        return dict(found)

    def _readers(
        self, records: Collection[str], graph_ids: Sequence[str]
    ) -> dict[str, list[Operation]]:
        """Whoever considered a version of the record, before the answer or after it."""
        found: dict[str, list[Operation]] = defaultdict(list)
        for graph_id in graph_ids:
            for record, items in self.lookups.record_users(graph_id, records).items():
                found[record].extend(items)
        return dict(found)


def _readable(operations: Iterable[Operation]) -> tuple[str, ...]:
    graphs = dict.fromkeys(
        graph_id for item in operations for graph_id in (item.graph_id, *item.reads)
    )
    return tuple(graphs)


def _records(operations: Iterable[Operation]) -> set[str]:
    return {
        variables.record_of(ref)
        for item in operations
        for ref in named_by(item)
        if ref.startswith(_RECORDS)
    }


def _values(
    reader: GraphReader, operations: Iterable[Operation], refs: Iterable[str]
) -> tuple[dict[str, Value], dict[str, str]]:
    """Values by reference, and their texts; a reference without a value of its own takes the
    text of an equal digest under the same key."""
    wanted: dict[str, set[str]] = defaultdict(set)
    keys: dict[str, str] = {}
    for item in operations:
        for ref in named_by(item):
            wanted[item.graph_id].add(ref)
            for graph_id in item.reads:
                wanted[graph_id].add(ref)
            keys.setdefault(ref, item.digest_key)
    for names in wanted.values():
        names.update(refs)
    values: dict[str, Value] = {}
    for graph_id, names in wanted.items():
        for ref, value in _with_quoted(reader, graph_id, names).items():
            values.setdefault(ref, value)
    texts = {ref: content.expand(value, values) for ref, value in values.items()}
    by_digest = {
        (keys.get(ref, ""), variables.text_version(variables.version_of(ref))): ref
        for ref, value in values.items()
        if not value.cut
    }
    for ref, key in keys.items():
        version = variables.text_version(variables.version_of(ref))
        same = by_digest.get((key, version))
        if ref not in texts and same is not None and _is_digest(version):
            texts[ref] = texts[same]
    return values, texts


def _with_quoted(reader: GraphReader, graph_id: str, refs: Collection[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    wanted = set(refs)
    while wanted:
        batch = reader.values(graph_id, wanted)
        found.update(batch)
        wanted = {ref for value in batch.values() for ref in content.references(value)} - set(found)
        wanted -= set(refs)
    return found


def _is_digest(version: str) -> bool:
    return version not in (semconv.UNKNOWN_VERSION, semconv.DELETED_VERSION)
