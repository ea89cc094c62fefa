"""What a graph question may ask of a store: batched, keyed lookups and nothing else.

Every engine answers these in the same way, so every walk gives the same result on all of them.
``graph_id`` leads every call; no call crosses graphs (a walk may, along ``reads``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol

from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Value


class GraphSummary(NamedTuple):
    """One row of the list of graphs. Times in nanoseconds."""

    graph_id: str
    operations: int
    first_ns: int
    last_ns: int


class SequenceNumber(NamedTuple):
    """A number that was seen, and when its operation ran; ``farewell`` ends the run."""

    process: str
    number: int
    start_ns: int
    end_ns: int
    farewell: bool = False


class Near(NamedTuple):
    """Of the operations that merely met a record (``references.acted_on``: not those), which:
    the ``first`` of all, the last ``before`` that started by ``at_ns``, the first ``after`` it.
    """

    at_ns: int
    first: int
    before: int
    after: int


class Run(NamedTuple):
    """Numbers of one process of which none between is missing; a farewell ends its run."""

    first: SequenceNumber
    last: SequenceNumber


class GraphReader(Protocol):
    """Reads of one tenant. Unknown keys are absent from results, never an error."""

    def graphs(self) -> list[GraphSummary]: ...

    def operations(
        self, graph_id: str, keys: Collection[OperationKey]
    ) -> dict[OperationKey, Operation]: ...

    def all_operations(self, graph_id: str) -> Iterable[Operation]:
        """Every operation of the graph by ``(start_ns, trace_id, span_id)``."""
        ...

    def trace_operations(self, trace_id: str) -> list[Operation]:
        """Every operation of the trace, of whatever graph (ids of traces are keys)."""
        ...

    def trace_siblings(self, keys: Collection[OperationKey]) -> dict[OperationKey, str]:
        """The other operations in the traces of these stored ones, of whatever graph: the graph
        of each.
        """
        ...

    def size(self, graph_id: str) -> int:
        """How many operations :meth:`all_operations` would give."""
        ...

    def producers(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        """The operations with the reference in ``outputs``, composites included."""
        ...

    def record_writers(self, graph_id: str, records: Collection[str]) -> dict[str, list[Operation]]:
        """For each ``kind:id``: the operations that produced any version of it."""
        ...

    def users(self, graph_id: str, refs: Collection[str]) -> dict[str, list[Operation]]:
        """The operations that have the reference as input, shown, delivered, dropped,
        superseded or decision target.
        """
        ...

    def record_users(
        self, graph_id: str, records: Collection[str], near: Near | None = None
    ) -> dict[str, list[Operation]]:
        """As :meth:`users`, for any version of each ``kind:id``. ``near`` bounds, per record,
        those that merely met it: a record may be searched up a million times.
        """
        ...

    def values(self, graph_id: str, refs: Collection[str]) -> dict[str, Value]: ...

    def search_values(
        self, graph_id: str, text: str, kinds: Collection[str] = (), limit: int = 20
    ) -> list[Value]:
        """Full-text search, best first."""
        ...

    def sequence(self, processes: Collection[str]) -> dict[str, list[SequenceNumber]]:
        """Every number seen of each process, in order. Sequences span graphs."""
        ...

    def runs(self, processes: Collection[str]) -> dict[str, list[Run]]:
        """The unbroken runs of :meth:`sequence`, in order."""
        ...

    def flags(self, graph_id: str | None = None) -> list[Flag]: ...

    def flags_at(self, targets: Collection[str]) -> list[Flag]:
        """The flags with one of these :attr:`~memtrace_collector.graph.facts.Flag.target`."""
        ...

    def response_operations(self, response_id: str) -> list[Operation]: ...

    def conversation_operations(self, conversation_id: str) -> list[Operation]: ...
