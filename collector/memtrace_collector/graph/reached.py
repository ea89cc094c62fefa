"""Which answers a broken invariant reached."""

from __future__ import annotations

from collections.abc import Iterable

from memtrace_collector.graph import invariants
from memtrace_collector.graph.facts import Operation
from memtrace_collector.graph.flags import is_answer
from memtrace_collector.graph.forward import downstream
from memtrace_collector.graph.invariants import Finding
from memtrace_collector.graph.lookups import Lookups
from memtrace_collector.graph.resolution import Occurrence

MAX_OPERATIONS = 2_000


def answers_reached(lookups: Lookups, finding: Finding) -> list[Operation]:
    """The answers that used what the finding is about, oldest first.

    Those of the same trace, else the first that came later: what is derived from a wrong answer
    is that answer's fault. An empty retrieval reaches the next answer of its trace; a write that
    never happened reaches none.
    """
    tree = lookups.tree(finding.operation.trace_id)
    broke = next((o for o in tree.operations if o.key == finding.operation), None)
    if broke is None or finding.kind == invariants.LOST_WRITE:
        return []
    if finding.kind == invariants.EMPTY_RETRIEVAL:
        return _oldest(o for o in tree.operations if o.end_ns >= broke.end_ns)[:1]
    start = [Occurrence(finding.ref, broke)]
    graph_ids = dict.fromkeys((finding.graph_id, *broke.reads))
    found = _oldest(
        downstream(lookups, start, tuple(graph_ids), MAX_OPERATIONS).operations.values()
    )
    return [each for each in found if each.trace_id == broke.trace_id] or found[:1]


def _oldest(operations: Iterable[Operation]) -> list[Operation]:
    answers = (item for item in operations if is_answer(item))
    return sorted(answers, key=lambda item: (item.end_ns, item.key))
