"""What of some operations is drawn: nodes, and links that run the way information flows. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph.facts import Operation, OperationKey, by_time
from memtrace_collector.graph.network import (
    DELIVERED,
    DROPPED,
    OPERATION,
    PRODUCED,
    SHOWN,
    SUPERSEDED,
    USED,
    VARIABLE,
)
from memtrace_otel import variables

DECIDED = "decided"
EXACT, INFERRED, AMBIGUOUS, INEXACT = "exact", "inferred", "ambiguous", "inexact"
_CERTAINTIES = (EXACT, INFERRED, AMBIGUOUS, INEXACT)
"""The surest first."""


class Node(NamedTuple):
    """An operation (``trace:span``), or a variable version (its reference) with no operation."""

    id: str
    kind: str
    operation: Operation | None
    time_ns: int
    """When it started; of a variable when it was made, or first used."""


class Link(NamedTuple):
    """``references``: how many passed along it. ``certainty``: whether that way is known,
    known by matching content only, one of several, or of another version of the record."""

    source: str
    target: str
    relation: str
    certainty: str
    references: int


class Elements(NamedTuple):
    """Nodes in the order of time; a variable that was made twice is one node."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]


Counts = Callable[[OperationKey, str], bool]
"""Does this reference of this operation count? Of a read that was merely met, few do."""


def everything_counts(_: OperationKey, __: str) -> bool:
    return True


def elements(
    operations: Iterable[Operation],
    parents: Mapping[OperationKey, tuple[OperationKey, ...]],
    marked: Collection[str] = (),
    counts: Counts = everything_counts,
) -> Elements:
    """Composites are left out: their children are the real stages.

    Args:
        operations: in any order.
        parents: consumer -> producers, deliverers and deciders, as they were resolved.
        marked: references to which what was only shown or dropped is drawn as well.
        counts: which references are drawn at all.
    """
    drawn = sorted((item for item in operations if not item.composite), key=by_time)
    weaving = _Weaving({item.key: item for item in drawn}, parents, frozenset(marked), counts)
    for item in drawn:
        weaving.add(item)
    return weaving.woven()


@dataclass(slots=True)
class _Weaving:
    operations: Mapping[OperationKey, Operation]
    parents: Mapping[OperationKey, tuple[OperationKey, ...]]
    marked: frozenset[str]
    counts: Counts
    _producers: dict[str, list[OperationKey]] = field(default_factory=lambda: defaultdict(list))
    _links: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)
    _met: dict[str, int] = field(default_factory=dict)
    """Variables that are drawn: when they were first met."""

    def __post_init__(self) -> None:
        for item in self.operations.values():
            for ref in item.outputs:
                if self.counts(item.key, ref):
                    self._producers[ref].append(item.key)

    def add(self, item: Operation) -> None:
        known = [key for key in self.parents.get(item.key, ()) if key in self.operations]
        explained: set[OperationKey] = {item.key}
        for ref in self._counted(item, item.outputs):
            self._variable(ref, item, PRODUCED)
        for ref in self._counted(item, item.inputs):
            explained |= self._use(item, ref, known)
        for ref in self._counted(item, item.delivered):
            self._variable(ref, item, DELIVERED)
            explained.update(self._producers.get(ref, ()))
        for ref in self._counted(item, item.supersedes):
            if ref in self._producers:
                self._variable(ref, item, SUPERSEDED)
        self._add_passed_over(item)
        for key in known:
            if key not in explained:
                self._link(str(key), str(item.key), DECIDED, EXACT)

    def woven(self) -> Elements:
        nodes = [
            Node(str(item.key), OPERATION, item, item.start_ns) for item in self.operations.values()
        ]
        nodes += [Node(ref, VARIABLE, None, self._made_at(ref)) for ref in self._met]
        nodes.sort(key=lambda node: (node.time_ns, node.kind, node.id))
        links = [
            Link(*ends, max(found, key=_CERTAINTIES.index), found.total())
            for ends, found in self._links.items()
        ]
        return Elements(tuple(nodes), tuple(links))

    def _use(self, user: Operation, ref: str, known: Sequence[OperationKey]) -> set[OperationKey]:
        """Draw one input; the parents by which it is explained."""
        own = _certainty(user, ref)
        makers = self._producers.get(ref, ())
        deliverers = [key for key in known if ref in self.operations[key].delivered]
        if deliverers:
            for key in deliverers:
                certainty = own if len(deliverers) == 1 else AMBIGUOUS
                self._link(str(key), str(user.key), DELIVERED, certainty)
            return {*deliverers, *makers}
        others = [] if makers else self._other_versions(ref, known)
        if others:
            for other, _ in others:
                self._variable(other, user, USED, INEXACT)
            return {key for _, key in others}
        resolved = set(makers).intersection(known)
        self._variable(ref, user, USED, AMBIGUOUS if len(resolved) > 1 else own)
        return resolved

    def _other_versions(
        self, ref: str, known: Iterable[OperationKey]
    ) -> list[tuple[str, OperationKey]]:
        record = variables.record_of(ref)
        return [
            (made, key)
            for key in known
            for made in self.operations[key].outputs
            if variables.record_of(made) == record
        ]

    def _add_passed_over(self, item: Operation) -> None:
        """What was shown or dropped, where somebody looks for it."""
        dropped = (entry.ref for entry in item.dropped)
        for refs, relation in ((item.shown, SHOWN), (dropped, DROPPED)):
            for ref in self._counted(item, refs):
                if ref in self.marked:
                    self._variable(ref, item, relation)

    def _counted(self, item: Operation, refs: Iterable[str]) -> Iterable[str]:
        return (ref for ref in dict.fromkeys(refs) if self.counts(item.key, ref))

    def _variable(self, ref: str, item: Operation, relation: str, certainty: str = "") -> None:
        """Draw a variable that the operation made, or else met."""
        self._met.setdefault(ref, item.start_ns)
        ends = (str(item.key), ref) if relation == PRODUCED else (ref, str(item.key))
        self._link(*ends, relation, certainty or _certainty(item, ref))

    def _link(self, source: str, target: str, relation: str, certainty: str) -> None:
        self._links.setdefault((source, target, relation), Counter())[certainty] += 1

    def _made_at(self, ref: str) -> int:
        makers = self._producers.get(ref)
        if not makers:
            return self._met[ref]
        return min(self.operations[key].start_ns for key in makers)


def _certainty(item: Operation, ref: str) -> str:
    return INFERRED if ref in item.inferred else EXACT
