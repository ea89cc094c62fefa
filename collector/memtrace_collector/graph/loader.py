"""Load the case of an answer: the part of the graphs that bears on one failure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memtrace_collector.graph import content, evidence, resolution
from memtrace_collector.graph.ancestry import Ancestry, ancestry, merge_parents, parents_of
from memtrace_collector.graph.case import Case, Write
from memtrace_collector.graph.closure import closure, processes_of
from memtrace_collector.graph.evidence import Evidence
from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Value
from memtrace_collector.graph.forward import downstream
from memtrace_collector.graph.history import current_at, has_ties, order_writes
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.reader import GraphReader, Near
from memtrace_collector.graph.references import acted_on, named_by
from memtrace_collector.graph.turns import turn
from memtrace_otel import semconv, variables

MAX_OPERATIONS = 20_000
_WHOLE_TRACE = 300
"""A trace of at most so many operations is loaded whole; of a longer one, what is met."""
_NEAR_FIRST, _NEAR_BEFORE, _NEAR_AFTER = 4, 12, 8
"""Of the searches and prompts that met a record: the first, the last before the answer, the
first after it. A record may have been met in every turn for years."""
_WRITES_FOLLOWED = 32
"""Writes of one record whose traces are loaded, from the first version that bears on the need."""
_RELATED_RECORDS = 12
_RECORDS = (f"{semconv.KIND_MEMORY}:", f"{semconv.KIND_DOCUMENT}:")
_READS = frozenset((semconv.STEP_RETRIEVE, semconv.STEP_RERANK))
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
    near = Near(answer.end_ns, _NEAR_FIRST, _NEAR_BEFORE, _NEAR_AFTER)
    lookups = Lookups(reader, near)
    back = ancestry(lookups, answer, max_operations)
    own_turn = turn(lookups, answer, back.operations)
    readable = _readable((*back.operations.values(), *own_turn.values()))
    given = evidence_given and bool(flag.evidence)
    asked = evidence.question_text(lookups, tuple(own_turn.values()))
    text = evidence.searched_for(asked, flag)
    hits = evidence.search(lookups, text, answer, readable, back.operations)
    if given:
        found = evidence.locate(lookups, flag.evidence, answer, readable)
    else:
        found = evidence.with_elsewhere(lookups, flag.expected, asked, answer, readable, hits)
    related = evidence.others(hits, found)
    walk = _Walk(lookups, answer, readable, max_operations)
    walk.gather(back, own_turn, found, related)
    walk.follow(evidence.bearing_records(lookups, text, readable, _RELATED_RECORDS))
    values, texts = _values(reader, walk.named(), found.refs)
    operations = walk.operations
    return Case(
        answer=answer,
        flag=flag,
        operations=operations,
        ancestry=frozenset(back.operations),
        parents=merge_parents(back.parents, walk.parents()),
        histories=walk.histories,
        values=values,
        texts=texts,
        turn=frozenset(own_turn),
        evidence=found.refs,
        evidence_given=given,
        closure=closure(reader, processes_of(operations.values())),
        lineage=resolution.INCOMPLETE if walk.truncated else back.status,
        unseen=back.missing,
        readable_graphs=frozenset(readable),
        related=related.refs,
        met=frozenset(walk.met),
        foreign=found.foreign,
    )


@dataclass(slots=True)
class _Walk:
    """Collects the operations of a case, from the certain to the merely related."""

    lookups: Lookups
    answer: Operation
    graph_ids: Sequence[str]
    max_operations: int
    operations: _Operations = field(default_factory=dict)
    histories: dict[str, tuple[Write, ...]] = field(default_factory=dict)
    met: set[OperationKey] = field(default_factory=set)
    truncated: bool = False
    _close: set[OperationKey] = field(default_factory=set)
    """Operations of which every record named counts as met."""
    _traced: set[str] = field(default_factory=set)
    _derived: dict[str, None] = field(default_factory=dict)
    """References downstream of the evidence."""

    def gather(
        self, back: Ancestry, own_turn: _Operations, found: Evidence, related: Evidence
    ) -> None:
        """Ancestry, turn, what lies downstream of the messages, and the siblings of all these."""
        self.graph_ids = tuple(dict.fromkeys((*self.graph_ids, *found.foreign.values())))
        self.operations = dict(back.operations) | own_turn
        start = (*found.occurrences, *related.occurrences)
        ahead = downstream(self.lookups, start, self.graph_ids, self.max_operations)
        self.truncated = back.truncated or ahead.truncated
        self._derived = dict.fromkeys(ahead.refs)
        self._add(ahead.operations.values())
        said_in = {item.trace_id for item in ahead.operations.values() if acted_on(item)}
        said_in.update(item.operation.trace_id for item in start)
        self._add_traces({item.trace_id for item in self.operations.values()})
        self._close = {
            key for key, item in self.operations.items() if key in own_turn or key[0] in said_in
        }

    def follow(self, bearing: Iterable[str]) -> None:
        """The histories of the records that were met, and around those that bear on the need
        the operations that wrote, changed and met them."""
        bearing = dict.fromkeys(bearing)
        records = self._records()
        records.update(variables.record_of(ref) for ref in bearing)
        for record, writers in self._writers(records).items():
            self.histories[record] = self._in_order(record, writers)
        self._add(write.operation for writes in self.histories.values() for write in writes)
        telling = {**self._derived, **bearing}
        self._add_traces(self._traces_of_changes(telling))
        watched = {variables.record_of(ref) for ref in telling} | self._outdated()
        self._add_users({record for record in watched if record.startswith(_RECORDS)})

    def named(self) -> Iterator[tuple[Operation, set[str]]]:
        """Each operation with the references whose values count."""
        for operation in self.operations.values():
            named = named_by(operation)
            if operation.key in self.met:
                named = {ref for ref in named if variables.record_of(ref) in self.histories}
            yield operation, named

    def parents(self) -> dict[OperationKey, tuple[OperationKey, ...]]:
        """One step back from every operation whose trace was loaded, inside the case."""
        found = parents_of(
            self.lookups,
            (
                item
                for key, item in self.operations.items()
                if item.trace_id in self._traced and item.step not in _READS
            ),
        )
        inside = {
            key: tuple(parent for parent in parents if parent in self.operations)
            for key, parents in found.items()
        }
        return {key: parents for key, parents in inside.items() if parents}

    def _add(self, more: Iterable[Operation]) -> None:
        for operation in more:
            if operation.key in self.operations:
                continue
            if len(self.operations) >= self.max_operations:
                self.truncated = True
                return
            self.operations[operation.key] = operation

    def _add_traces(self, traces: Iterable[str]) -> None:
        """Siblings of what was met: decisions that chose nothing, writes that failed."""
        for trace_id in sorted(set(traces) - self._traced):
            self._traced.add(trace_id)
            siblings = self.lookups.tree(trace_id).operations
            if len(siblings) <= _WHOLE_TRACE:
                self._add(siblings)
            else:
                parents = {item.parent_span_id for item in self.operations.values()} - {""}
                self._add(s for s in siblings if s.parent_span_id in parents)

    def _records(self) -> set[str]:
        """Records met: all that the turn and the writers of the evidence name, and what others
        made or used."""
        return {
            variables.record_of(ref)
            for key, item in self.operations.items()
            for ref in (named_by(item) if key in self._close else {*acted_on(item), *item.outputs})
            if ref.startswith(_RECORDS)
        }

    def _writers(self, records: Collection[str]) -> dict[str, list[Operation]]:
        found: dict[str, list[Operation]] = defaultdict(list)
        for graph_id in self.graph_ids:
            for record, items in self.lookups.writers(graph_id, records).items():
                found[record].extend(items)
        return found

    def _in_order(self, record: str, writers: Sequence[Operation]) -> tuple[Write, ...]:
        readers: list[Operation] = []
        if has_ties(record, writers):
            for graph_id in self.graph_ids:
                users = self.lookups.record_users(graph_id, [record])
                readers.extend(users.get(record, ()))
        return order_writes(record, writers, readers)

    def _traces_of_changes(self, telling: Collection[str]) -> set[str]:
        """Traces in which a version that bears on the need was written or replaced."""
        traces: set[str] = set()
        for writes in self.histories.values():
            first = next((n for n, write in enumerate(writes) if write.version in telling), None)
            if first is not None:
                followed = writes[first : first + _WRITES_FOLLOWED]
                traces.update(write.operation.trace_id for write in followed)
        return traces

    def _outdated(self) -> set[str]:
        """Records of which this turn was given another version than the last one before it."""
        found = set()
        for key in self._close:
            for ref in self.operations[key].delivered:
                writes = self.histories.get(variables.record_of(ref), ())
                current = current_at(writes, self.operations[key].start_ns)
                if current is not None and current.version != ref:
                    found.add(variables.record_of(ref))
        return found

    def _add_users(self, records: Collection[str]) -> None:
        """Who decided about these records or met them, in whatever turn."""
        for graph_id in self.graph_ids:
            for record, users in self.lookups.record_users(graph_id, records).items():
                for user in users:
                    if user.key in self.operations:
                        continue
                    if user.step in _READS:
                        self.met.add(user.key)
                        self._add((user,))
                    elif record in map(variables.record_of, acted_on(user)):
                        self._add((user,))


def _readable(operations: Iterable[Operation]) -> tuple[str, ...]:
    graphs = dict.fromkeys(
        graph_id for item in operations for graph_id in (item.graph_id, *item.reads)
    )
    return tuple(graphs)


def _values(
    reader: GraphReader, named: Iterable[tuple[Operation, set[str]]], refs: Iterable[str]
) -> tuple[dict[str, Value], dict[str, str]]:
    """Values by reference, and their texts; a reference without a value of its own takes the
    text of an equal digest under the same key."""
    wanted: dict[str, set[str]] = defaultdict(set)
    keys: dict[str, str] = {}
    for item, named_there in named:
        for graph_id in (item.graph_id, *item.reads):
            wanted[graph_id] |= named_there
        for ref in named_there:
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
