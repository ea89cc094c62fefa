"""Which producer: what a use of a reference goes back to (DESIGN section 3.3).

A use of something delivered earlier in the same trace goes to the latest such delivery; other
uses go to a producer. If the rules leave several, all stay and the edge is ambiguous.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from memtrace_collector.graph.facts import Operation, OperationKey
from memtrace_collector.graph.history import current_at, is_deleted
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.references import same_record_as
from memtrace_collector.graph.trace_tree import TraceTree
from memtrace_otel import semconv, variables

COMPLETE, INEXACT, AMBIGUOUS, INCOMPLETE = "complete", "inexact", "ambiguous", "incomplete"
_SEVERITY = (COMPLETE, INEXACT, AMBIGUOUS, INCOMPLETE)
_CLOCK_TOLERANCE_NS = 2_000_000_000
_ALWAYS_SOURCES = frozenset((semconv.KIND_QUERY, semconv.KIND_PROMPT))
_SOURCES = _ALWAYS_SOURCES | {semconv.KIND_MESSAGE, semconv.KIND_DOCUMENT}
_RECORDS = frozenset((semconv.KIND_MEMORY, semconv.KIND_DOCUMENT))

DELIVERED, PRODUCED, SOURCE, MISSING = "delivered", "produced", "source", "missing"


class Use(NamedTuple):
    """An operation's use of a reference."""

    user: Operation
    ref: str

    @property
    def key(self) -> UseKey:
        return UseKey(self.user.key, self.ref)

    @property
    def graph_ids(self) -> tuple[str, ...]:
        """Where producers are looked for, in order."""
        return (self.user.graph_id, *self.user.reads)


class UseKey(NamedTuple):
    """Identity of a :class:`Use`."""

    user: OperationKey
    ref: str


class Occurrence(NamedTuple):
    """A reference together with the operation that produced (or delivered) it."""

    ref: str
    operation: Operation


class Resolution(NamedTuple):
    """What a use goes back to, how (``via``), and how surely (``status``)."""

    occurrences: tuple[Occurrence, ...]
    via: str
    status: str = COMPLETE


def worst(statuses: Iterable[str]) -> str:
    """The least certain of several lineage statuses."""
    return max(statuses, key=_SEVERITY.index, default=COMPLETE)


def is_plain(lookups: Lookups, use: Use, maker: OperationKey | None) -> bool:
    """Does the use go back to ``maker``, the only producer in its graph, whatever the rules?"""
    user = use.user
    if maker is None or maker == user.key or user.sources.get(use.ref, maker) != maker:
        return False
    return lookups.is_alone(user.trace_id) or not _is_delivered(use, lookups.tree(user.trace_id))


def _is_delivered(use: Use, tree: TraceTree) -> bool:
    is_unknown = variables.version_of(use.ref) == semconv.UNKNOWN_VERSION
    names = (use.ref, variables.record_of(use.ref)) if is_unknown else (use.ref,)
    return any(item.key != use.user.key for name in names for item in tree.delivering(name))


def resolve(lookups: Lookups, uses: Collection[Use]) -> dict[UseKey, Resolution]:
    """Resolve many uses with few reads."""
    lookups.read_traces([use.user for use in uses])
    lookups.read_operations(_all_named(uses))
    resolved: dict[UseKey, Resolution] = {}
    open_uses: list[Use] = []
    for use in uses:
        delivery = _delivery(lookups, use)
        if delivery is not None:
            resolved[use.key] = delivery
        else:
            open_uses.append(use)
    candidates = _candidates(lookups, open_uses)
    without = [use for use in open_uses if not candidates.get(use.key)]
    _prefetch_writers(lookups, without)
    for use in open_uses:
        found = candidates.get(use.key)
        resolved[use.key] = _choose(lookups, use, found) if found else _join(lookups, use)
    return resolved


def _delivery(lookups: Lookups, use: Use) -> Resolution | None:
    named = _named(lookups, use)
    if named is not None and use.ref not in named.outputs:
        exact = use.ref in named.delivered
        refs = [use.ref] if exact else _same_record(named.delivered, use.ref)
        if refs:
            status = COMPLETE if exact else INEXACT
            return Resolution((Occurrence(refs[0], named),), DELIVERED, status)
    return _delivery_in_trace(lookups, use)


def _all_named(uses: Iterable[Use]) -> dict[OperationKey, tuple[str, ...]]:
    return {use.user.sources[use.ref]: use.graph_ids for use in uses if use.ref in use.user.sources}


def _named(lookups: Lookups, use: Use) -> Operation | None:
    key = use.user.sources.get(use.ref)
    if key is None or key == use.user.key:
        return None
    named = lookups.operation(key, use.graph_ids)
    if named is None or key.trace_id == use.user.trace_id:
        return named
    return named if named.graph_id in use.graph_ids else None


def _delivery_in_trace(lookups: Lookups, use: Use) -> Resolution | None:
    tree = lookups.tree(use.user.trace_id)
    exact = [other for other in tree.delivering(use.ref) if _before(use, other, tree)]
    if exact:
        latest = _latest(tree.innermost(exact))
        status = COMPLETE if len(latest) == 1 else AMBIGUOUS
        return Resolution(tuple(Occurrence(use.ref, other) for other in latest), DELIVERED, status)
    if variables.version_of(use.ref) != semconv.UNKNOWN_VERSION:
        return None
    record = variables.record_of(use.ref)
    same = [other for other in tree.delivering(record) if _before(use, other, tree)]
    if not same:
        return None
    other = _latest(tree.innermost(same))[0]
    found = Occurrence(_same_record(other.delivered, use.ref)[0], other)
    return Resolution((found,), DELIVERED, INEXACT)


def _before(use: Use, other: Operation, tree: TraceTree) -> bool:
    user = use.user
    if other.key == user.key or tree.encloses(other, user):
        return False
    if use.ref in user.delivered:
        # a stage got it from an earlier stage; only a composite gets it from its children
        return other.end_ns <= user.start_ns or (user.composite and tree.encloses(user, other))
    return other.start_ns <= user.end_ns


def _latest(operations: Sequence[Operation]) -> list[Operation]:
    newest = max(operation.start_ns for operation in operations)
    return [operation for operation in operations if operation.start_ns == newest]


def _same_record(refs: Iterable[str], wanted: str) -> list[str]:
    return [ref for ref in refs if same_record_as(ref, wanted)]


def _candidates(lookups: Lookups, uses: Sequence[Use]) -> dict[UseKey, list[Operation]]:
    found: dict[UseKey, list[Operation]] = {}
    for depth in range(1 + semconv.MAX_READS):
        wanted: dict[str, list[Use]] = defaultdict(list)
        for use in uses:
            if use.key not in found and depth < len(use.graph_ids):
                wanted[use.graph_ids[depth]].append(use)
        if not wanted:
            break
        for graph_id, asking in wanted.items():
            producers = lookups.producers(graph_id, {use.ref for use in asking})
            for use in asking:
                others = [item for item in producers.get(use.ref, ()) if item.key != use.user.key]
                if others:
                    found[use.key] = innermost(lookups, others)
    return found


def innermost(lookups: Lookups, operations: Sequence[Operation]) -> list[Operation]:
    """Of nested operations only the innermost."""
    by_trace: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        by_trace[operation.trace_id].append(operation)
    kept: list[Operation] = []
    for trace_id, group in by_trace.items():
        kept.extend(group if len(group) == 1 else lookups.tree(trace_id).innermost(group))
    return kept


def _choose(lookups: Lookups, use: Use, candidates: list[Operation]) -> Resolution:
    for narrow in (_by_name, _by_trace, _by_history, _by_time):
        if len(candidates) == 1:
            break
        candidates = narrow(lookups, use, candidates)
    status = COMPLETE if len(candidates) == 1 else AMBIGUOUS
    return Resolution(tuple(Occurrence(use.ref, item) for item in candidates), PRODUCED, status)


def _by_name(lookups: Lookups, use: Use, candidates: list[Operation]) -> list[Operation]:
    del lookups
    named = use.user.sources.get(use.ref)
    return [item for item in candidates if item.key == named] or candidates


def _by_trace(lookups: Lookups, use: Use, candidates: list[Operation]) -> list[Operation]:
    user = use.user
    started = [
        item
        for item in candidates
        if item.trace_id == user.trace_id and item.start_ns <= user.end_ns
    ]
    if not started:
        return candidates
    tree = lookups.tree(user.trace_id)
    deepest = max(tree.common_depth(item, user) for item in started)
    return _latest([item for item in started if tree.common_depth(item, user) == deepest])


def _by_history(lookups: Lookups, use: Use, candidates: list[Operation]) -> list[Operation]:
    """For a record: the write that made the version current when the user started."""
    if use.ref.partition(":")[0] not in _RECORDS:
        return candidates
    keys = {item.key for item in candidates}
    for graph_id in use.graph_ids:
        writes = lookups.history(graph_id, variables.record_of(use.ref))
        made = [
            write
            for write in writes
            if write.version == use.ref
            and write.operation.key in keys
            and write.operation.start_ns <= use.user.start_ns
        ]
        if made:
            return [made[-1].operation]
    return candidates


def _by_time(lookups: Lookups, use: Use, candidates: list[Operation]) -> list[Operation]:
    del lookups
    started = [item for item in candidates if _could_precede(item, use.user)]
    return _latest(started) if started else candidates


def _could_precede(earlier: Operation, later: Operation) -> bool:
    tolerance = 0 if _process(earlier) == _process(later) else _CLOCK_TOLERANCE_NS
    return earlier.start_ns <= later.end_ns + tolerance


def _process(operation: Operation) -> str:
    return operation.sequence.process if operation.sequence else operation.service


def _prefetch_writers(lookups: Lookups, uses: Sequence[Use]) -> None:
    wanted: dict[str, set[str]] = defaultdict(set)
    for use in uses:
        if use.ref.partition(":")[0] not in _ALWAYS_SOURCES:
            for graph_id in use.graph_ids:
                wanted[graph_id].add(variables.record_of(use.ref))
    for graph_id, records in wanted.items():
        lookups.writers(graph_id, records)


def _join(lookups: Lookups, use: Use) -> Resolution:
    """Attach to the version of the same record that was current when the user started."""
    kind = use.ref.partition(":")[0]
    if kind not in _ALWAYS_SOURCES:
        for graph_id in use.graph_ids:
            writes = [
                write
                for write in lookups.history(graph_id, variables.record_of(use.ref))
                if write.operation.key != use.user.key
            ]
            if writes:
                # what was seen cannot have been the tombstone
                visible = [write for write in writes if not is_deleted(write.version)] or writes
                write = current_at(visible, use.user.start_ns) or visible[0]
                found = Occurrence(write.version, write.operation)
                return Resolution((found,), PRODUCED, INEXACT)
    if kind in _SOURCES:
        return Resolution((), SOURCE)
    return Resolution((), MISSING, INCOMPLETE)
