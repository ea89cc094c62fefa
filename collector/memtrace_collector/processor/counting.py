"""What newly projected operations say about the memory, for counters: once for a batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from memtrace_collector.graph.facts import Operation
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.histograms import distribution
from memtrace_collector.telemetry.metrics import Metrics
from memtrace_otel import semconv, variables

_RECORDS = (f"{semconv.KIND_MEMORY}:", f"{semconv.KIND_DOCUMENT}:")
_TOMBSTONE = f"@{semconv.DELETED_VERSION}"
_READING = frozenset((semconv.STEP_RETRIEVE, semconv.STEP_RERANK, semconv.STEP_ASSEMBLE))
"""What these name as outputs is no change of what is stored."""
_NS = 1_000_000_000


def count(operations: Iterable[Operation], metrics: Metrics) -> None:
    """Count operations that were not known before.

    How many and how long is told of every one. Records and searches are told of operations that
    did it themselves (not composite) and ended without an error.
    """
    alike: defaultdict[tuple[str, str, bool], list[Operation]] = defaultdict(list)
    for operation in operations:
        alike[operation.system, operation.step, not operation.error_type].append(operation)
    for (system, step, is_ok), group in alike.items():
        _count_times(system, step, "ok" if is_ok else "error", group, metrics)
        if is_ok and step == semconv.STEP_RETRIEVE:
            _count_searches(system, [each for each in group if not each.composite], metrics)
        elif is_ok and step not in _READING:
            _count_changes(system, group, metrics)


def changes(operation: Operation) -> Iterator[str]:
    """Of each record that it ``created``, ``updated`` or ``deleted``.

    Updated is a record of which it says that another version is superseded, and any that a step
    called update writes. What a composite did, its parts did.
    """
    if operation.composite:
        return
    for ref in operation.outputs:
        if ref.startswith(_RECORDS):
            yield _change(operation, ref)


def _change(operation: Operation, ref: str) -> str:
    if ref.endswith(_TOMBSTONE):
        return "deleted"
    record = variables.record_of(ref)
    is_update = operation.step == semconv.STEP_UPDATE or any(
        variables.record_of(each) == record for each in operation.supersedes
    )
    return "updated" if is_update else "created"


def _count_times(
    system: str, step: str, outcome: str, group: Sequence[Operation], metrics: Metrics
) -> None:
    seconds = [max(0, each.end_ns - each.start_ns) / _NS for each in group]
    values = distribution(METRICS["memtrace.operation.duration"].bounds, seconds)
    metrics.add("memtrace.operations", len(group), system=system, step=step)
    metrics.merge("memtrace.operation.duration", values, system=system, step=step, outcome=outcome)


def _count_changes(system: str, group: Iterable[Operation], metrics: Metrics) -> None:
    changed = Counter(change for each in group if each.outputs for change in changes(each))
    for change, number in changed.items():
        metrics.add("memtrace.records.changed", number, system=system, change=change)


def _count_searches(system: str, searches: Sequence[Operation], metrics: Metrics) -> None:
    empty = sum(not each.delivered for each in searches)
    delivered = sum(len(each.delivered) for each in searches)
    dropped = Counter(item.reason for each in searches for item in each.dropped)
    for result, number in (("delivered", len(searches) - empty), ("empty", empty)):
        metrics.add("memtrace.retrievals", number, system=system, result=result)
    metrics.add("memtrace.retrieval.delivered", delivered, system=system)
    for reason, number in dropped.items():
        metrics.add("memtrace.retrieval.dropped", number, system=system, reason=reason)
