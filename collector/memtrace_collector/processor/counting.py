"""What newly projected operations say about the memory, for counters: once for a batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from memtrace_collector.graph.facts import Operation
from memtrace_collector.telemetry.catalog import METRICS
from memtrace_collector.telemetry.histograms import distribution
from memtrace_collector.telemetry.metrics import Metrics
from memtrace_otel import semconv, variables

_RECORDS = (f"{semconv.KIND_MEMORY}:", f"{semconv.KIND_DOCUMENT}:")
_TOMBSTONE = f"@{semconv.DELETED_VERSION}"
_NS = 1_000_000_000


def count(operations: Iterable[Operation], metrics: Metrics) -> None:
    """Count operations that were not known before.

    How many and how long is told of every one. Records and searches are told of operations that
    did it themselves (not composite) and ended without an error.
    """
    seconds: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    done: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        outcome = "error" if operation.error_type else "ok"
        took = max(0, operation.end_ns - operation.start_ns) / _NS
        seconds[operation.system, operation.step, outcome].append(took)
        if outcome == "ok" and not operation.composite:
            done[operation.system].append(operation)
    for (system, step, outcome), took_each in seconds.items():
        metrics.add("memtrace.operations", len(took_each), system=system, step=step)
        values = distribution(METRICS["memtrace.operation.duration"].bounds, took_each)
        metrics.merge(
            "memtrace.operation.duration", values, system=system, step=step, outcome=outcome
        )
    for system, own in done.items():
        _count_changes(system, own, metrics)
        searches = [each for each in own if each.step == semconv.STEP_RETRIEVE]
        if searches:
            _count_searches(system, searches, metrics)


def changes(operation: Operation) -> Counter[str]:
    """How many records it ``created``, ``updated`` and ``deleted``.

    Updated is a record whose earlier version the operation says it supersedes, and any that a
    step called update writes.
    """
    written = [ref for ref in operation.outputs if ref.startswith(_RECORDS)]
    if not written:
        return Counter()
    replaced = {variables.record_of(ref) for ref in operation.supersedes}
    is_update = operation.step == semconv.STEP_UPDATE
    return Counter(
        "deleted"
        if ref.endswith(_TOMBSTONE)
        else "updated"
        if is_update or variables.record_of(ref) in replaced
        else "created"
        for ref in written
    )


def _count_changes(system: str, operations: Iterable[Operation], metrics: Metrics) -> None:
    changed: Counter[str] = Counter()
    for operation in operations:
        if operation.outputs:
            changed.update(changes(operation))
    for change, number in changed.items():
        metrics.add("memtrace.records.changed", number, system=system, change=change)


def _count_searches(system: str, searches: list[Operation], metrics: Metrics) -> None:
    empty = sum(not each.delivered for each in searches)
    delivered = sum(len(each.delivered) for each in searches)
    dropped = Counter(item.reason for each in searches for item in each.dropped)
    for result, number in (("delivered", len(searches) - empty), ("empty", empty)):
        metrics.add("memtrace.retrievals", number, system=system, result=result)
    metrics.add("memtrace.retrieval.delivered", delivered, system=system)
    for reason, number in dropped.items():
        metrics.add("memtrace.retrieval.dropped", number, system=system, reason=reason)
