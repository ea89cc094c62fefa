"""The memory invariants that are always watched: from structure only, without flags or content.

Versions under two digest keys are never compared, a text that returns is not stale, and a
version nobody could see (``@?``) proves nothing.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec import structs

from memtrace_collector.graph import deciding
from memtrace_collector.graph.case import Closure, Write
from memtrace_collector.graph.closure import closure, processes_of
from memtrace_collector.graph.facts import Decision, Operation, OperationKey
from memtrace_collector.graph.history import is_deleted
from memtrace_collector.graph.latest import latest_others
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.reader import GraphReader
from memtrace_collector.graph.trace_tree import TraceTree
from memtrace_otel import semconv, variables

STALE, ZOMBIE, FOREIGN = "stale", "zombie", "foreign"
LOST_WRITE, FLAPPING, EMPTY_RETRIEVAL = "lost_write", "flapping", "empty_retrieval"
KINDS = (STALE, ZOMBIE, FOREIGN, LOST_WRITE, FLAPPING, EMPTY_RETRIEVAL)

_CLOCK_TOLERANCE_NS = 2_000_000_000
_RECORDS = (f"{semconv.KIND_MEMORY}:", f"{semconv.KIND_DOCUMENT}:")
_WRITING_ACTIONS = frozenset(("ADD", "UPDATE", "DELETE"))
_SKIPPED = "skipped"
_PART = 256
"""Operations, or records, that are looked at together with those that wrote what they read."""
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken invariant: ``operation`` of ``graph_id`` broke it, ``ref`` is what it did it with,
    a version of a record that was written in ``written_in`` (empty: it is about no record)."""

    kind: str
    graph_id: str
    operation: OperationKey
    ref: str
    says: str
    written_in: str = ""


def check(reader: GraphReader, graph_id: str) -> list[Finding]:
    """Everything found in one graph, oldest first.

    The graph is read in parts, so that a large one takes no more memory than what is found in it.
    """
    found: list[tuple[int, Finding]] = []
    records: set[str] = set()
    for part in _parts(reader.all_operations(graph_id)):
        lookups = Lookups(reader)
        found.extend(_outdated_or_foreign(lookups, graph_id, part))
        found.extend(_lost_or_empty(lookups, graph_id, part))
        records.update(variables.record_of(r) for o in part for r in o.outputs if _is_record(r))
    for names in _parts(sorted(records)):
        lookups = Lookups(reader)
        lookups.writers(graph_id, names)
        for record in names:
            found.extend(_flaps(graph_id, record, lookups.history(graph_id, record)))
    return [item for _, item in sorted(_first_per_trace(found), key=lambda pair: pair[0])]


def of_record(
    lookups: Lookups, graph_id: str, record: str, met: Iterable[Operation]
) -> list[Finding]:
    """Of what :func:`check` finds that which concerns one record of the graph, oldest first, as
    far as these operations that met it show."""
    found: list[tuple[int, Finding]] = []
    operations = [item for item in met if not item.composite]
    for item in operations:
        refs = [ref for ref in item.delivered if variables.record_of(ref) == record]
        about = (
            _outdated(lookups, item.graph_id, item, refs)
            if graph_id in (item.graph_id, *item.reads)
            else _not_named(graph_id, item, refs)
        )
        found.extend((item.start_ns, each) for each in about)
    found.extend(_lost_or_empty(lookups, graph_id, _deciding_about(graph_id, record, operations)))
    found.extend(_flaps(graph_id, record, lookups.history(graph_id, record)))
    return [item for _, item in sorted(_first_per_trace(found), key=lambda pair: pair[0])]


def _deciding_about(graph_id: str, record: str, operations: Iterable[Operation]) -> list[Operation]:
    """The deciders among them, each with its decisions about the record alone."""
    found = []
    for item in operations:
        about = [each for each in item.decisions if _targets(record, each)]
        if about and item.graph_id == graph_id:
            found.append(structs.replace(item, decisions=tuple(about)))
    return found


def _targets(record: str, decision: Decision) -> bool:
    return decision.target is not None and variables.record_of(decision.target) == record


def _not_named(graph_id: str, read: Operation, refs: Iterable[str]) -> Iterator[Finding]:
    """Deliveries of what was written in a graph that the read does not name."""
    for ref in refs:
        if not _is_content_addressed(ref):
            says = f"{ref} was written in {graph_id}, which this read does not name"
            yield Finding(FOREIGN, read.graph_id, read.key, ref, says, graph_id)


def _parts(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    rest = iter(items)
    while part := list(itertools.islice(rest, _PART)):
        yield part


def _outdated_or_foreign(
    lookups: Lookups, graph_id: str, operations: Iterable[Operation]
) -> Iterator[tuple[int, Finding]]:
    reads = [item for item in operations if item.delivered and not item.composite]
    _prefetch(lookups, graph_id, reads)
    for read in reads:
        outdated = _outdated(lookups, graph_id, read, filter(_is_record, read.delivered))
        yield from ((read.start_ns, item) for item in outdated)
    for read, ref, other in _foreign(lookups, graph_id, reads):
        yield from ((read.start_ns, item) for item in _not_named(other, read, [ref]))


def _lost_or_empty(
    lookups: Lookups, graph_id: str, operations: Sequence[Operation]
) -> Iterator[tuple[int, Finding]]:
    known = closure(lookups.reader, processes_of(operations))
    for operation in operations:
        if not operation.decisions and not _found_nothing(operation):
            continue
        trace = lookups.tree(operation.trace_id).operations
        tree = TraceTree([item for item in trace if item.graph_id == graph_id])
        lost = _lost_writes(graph_id, operation, tree, known)
        yield from ((operation.start_ns, item) for item in lost)
        if _found_nothing(operation) and _is_users_search(operation, tree):
            ref = next(iter(operation.inputs), "")
            says = "the search returned nothing"
            item = Finding(EMPTY_RETRIEVAL, graph_id, operation.key, ref, says)
            yield operation.start_ns, item


def _first_per_trace(found: Iterable[tuple[int, Finding]]) -> list[tuple[int, Finding]]:
    """A stage that passes on what an earlier one delivered breaks nothing of its own."""
    first: dict[tuple[str, str, str], tuple[int, Finding]] = {}
    rest = []
    for start_ns, item in sorted(found, key=lambda pair: (pair[0], pair[1].operation)):
        if item.kind in (STALE, ZOMBIE, FOREIGN):
            first.setdefault((item.kind, item.operation.trace_id, item.ref), (start_ns, item))
        else:
            rest.append((start_ns, item))
    return [*first.values(), *rest]


def _is_record(ref: str) -> bool:
    return ref.startswith(_RECORDS)


def _prefetch(lookups: Lookups, graph_id: str, reads: Iterable[Operation]) -> None:
    wanted: dict[str, set[str]] = defaultdict(set)
    for read in reads:
        records = {variables.record_of(ref) for ref in read.delivered if _is_record(ref)}
        for each in (graph_id, *read.reads):
            wanted[each] |= records
    for each, records in wanted.items():
        lookups.writers(each, records)


def _outdated(
    lookups: Lookups, graph_id: str, read: Operation, refs: Iterable[str]
) -> Iterator[Finding]:
    """Stale and zombie deliveries of one read, of those that are asked about."""
    for ref in refs:
        for each in (graph_id, *read.reads):
            writes = lookups.history(each, variables.record_of(ref))
            if not writes:
                continue
            current = _in_force(writes, read)
            if current is None:
                break
            if is_deleted(current.version):
                says = f"{ref} was delivered after {current.operation.key} deleted the record"
                yield Finding(ZOMBIE, graph_id, read.key, ref, says, each)
            elif _is_superseded(writes, ref, current, read):
                says = f"{ref} was delivered after {current.operation.key} wrote {current.version}"
                yield Finding(STALE, graph_id, read.key, ref, says, each)
            break


def _in_force(writes: Sequence[Write], read: Operation) -> Write | None:
    """The last write that was surely over when the read began; None when one was under way."""
    surely_later = read.end_ns + _CLOCK_TOLERANCE_NS
    for write in reversed(writes):
        operation = write.operation
        if operation.start_ns > surely_later:
            continue
        tolerance = 0 if _same_process(operation, read) else _CLOCK_TOLERANCE_NS
        if operation.start_ns > read.end_ns + tolerance:
            continue
        return write if operation.end_ns + tolerance <= read.start_ns else None
    return None


def _is_superseded(writes: Sequence[Write], ref: str, current: Write, read: Operation) -> bool:
    if current.version == ref or _is_unseen(current.version) or _is_unseen(ref):
        return False
    if "~" not in variables.version_of(ref) and _same_text(ref, current.version):
        # the reader may not have seen the state that was added to the same text
        return False
    same_key = current.operation.digest_key == read.digest_key
    was_written = any(
        write.version == ref and write.operation.digest_key == read.digest_key for write in writes
    )
    return same_key and was_written


def _same_text(one: str, other: str) -> bool:
    versions = (variables.version_of(one), variables.version_of(other))
    return variables.text_version(versions[0]) == variables.text_version(versions[1])


def _is_unseen(ref: str) -> bool:
    return variables.version_of(ref) == semconv.UNKNOWN_VERSION


def _same_process(one: Operation, other: Operation) -> bool:
    if one.sequence is None or other.sequence is None:
        return False
    return one.sequence.process == other.sequence.process


def _foreign(
    lookups: Lookups, graph_id: str, reads: Sequence[Operation]
) -> Iterator[tuple[Operation, str, str]]:
    """Deliveries of records that only another graph of the tenant was seen to write."""
    unwritten: dict[str, list[tuple[Operation, str]]] = defaultdict(list)
    for read in reads:
        for ref in filter(_is_record, read.delivered):
            record = variables.record_of(ref)
            own = any(lookups.writers(each, [record]) for each in (graph_id, *read.reads))
            if not own and not _is_content_addressed(ref):
                unwritten[record].append((read, ref))
    if not unwritten:
        return
    for other in latest_others(lookups.reader, [graph_id]):
        for record in lookups.writers(other, unwritten):
            for read, ref in unwritten[record]:
                yield read, ref, other


def _is_content_addressed(ref: str) -> bool:
    """Two owners may hold the same text: equal ids prove nothing then."""
    parsed = variables.parse(ref)
    return parsed.id.startswith(variables.text_version(parsed.version))


def _lost_writes(
    graph_id: str, decider: Operation, tree: TraceTree, known: Closure
) -> Iterator[Finding]:
    """Decisions that no write of the trace carried out, where that can be known."""
    for decision in decider.decisions:
        if decision.action not in _WRITING_ACTIONS or decision.status == _SKIPPED:
            continue
        if _is_written(decider, decision, tree) or not _is_closed(decider, tree, known):
            continue
        ref = decision.fact or decision.target or ""
        says = f"{decision.action} was decided and no write of the trace did it"
        home = graph_id if _is_record(ref) else ""
        yield Finding(LOST_WRITE, graph_id, decider.key, ref, says, home)


def _is_written(decider: Operation, decision: Decision, tree: TraceTree) -> bool:
    return any(
        deciding.executes(write, decider, decision)
        for write in tree.writes_for(decider)
        if write.key != decider.key and not write.error_type and not write.composite
    )


def _is_closed(decider: Operation, tree: TraceTree, known: Closure) -> bool:
    """Has everything arrived that ran until the operation around the decision ended?"""
    around = tree.enclosing(decider)
    end_ns = max((item.end_ns for item in around), default=decider.end_ns)
    if decider.sequence is None:
        return bool(around)
    processes = frozenset((decider.sequence.process,))
    absence = known.absence(decider.start_ns, end_ns, processes)
    return absence == "proven" or (absence == "assumed" and bool(around))


def _found_nothing(operation: Operation) -> bool:
    return (
        operation.step == semconv.STEP_RETRIEVE
        and not operation.delivered
        and not operation.error_type
    )


def _is_users_search(operation: Operation, tree: TraceTree) -> bool:
    """Not the look for similar memories inside an add."""
    if not tree.is_leaf(operation):
        return False
    return all(item.step != semconv.STEP_ADD for item in tree.enclosing(operation))


def _flaps(graph_id: str, record: str, writes: Sequence[Write]) -> Iterator[tuple[int, Finding]]:
    """A value that left and came back: A, B, A."""
    left: set[tuple[str, str]] = set()
    current: tuple[str, str] | None = None
    for write in writes:
        if is_deleted(write.version) or _is_unseen(write.version):
            continue
        key = write.operation.digest_key
        value = (key, variables.text_version(variables.version_of(write.version)))
        if current is not None and value != current:
            left.add(current)
            if value in left:
                says = f"{record} holds a value again that had been replaced"
                operation = write.operation
                yield (
                    operation.start_ns,
                    Finding(FLAPPING, graph_id, operation.key, write.version, says, graph_id),
                )
        current = value
