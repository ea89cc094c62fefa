"""The case of an answer: the part of the graphs that bears on one failure, loaded.

Everything attribution may look at is in here; the rules never reach into a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from memtrace_collector.graph.facts import Flag, Operation, OperationKey, Value


class Write(NamedTuple):
    """One event in a record's life: an operation made this version current."""

    version: str
    """The full reference, e.g. ``mem:mem0:…@9a1b2c3d4e5f`` or ``…@deleted``."""
    operation: Operation


class Loss(NamedTuple):
    """Numbers of a process that were never seen: something ran there and we do not know what."""

    process: str
    first: int
    last: int
    after_ns: int
    before_ns: int


@dataclass(frozen=True, slots=True)
class Closure:
    """What is known about completeness: may an absence be claimed over a window?"""

    losses: tuple[Loss, ...] = ()
    last_seen_ns: Mapping[str, int] = field(default_factory=dict)
    """Per process: start of the last number seen (a farewell counts as infinity, 2**63)."""

    def absence(self, start_ns: int, end_ns: int, processes: frozenset[str]) -> str:
        """``proven``, ``assumed`` or ``broken`` for what did not happen in the window, in
        these processes (none known: assumed, no sequence was sent).
        """
        concerned = [loss for loss in self.losses if loss.process in processes]
        if any(loss.after_ns <= end_ns and loss.before_ns >= start_ns for loss in concerned):
            return "broken"
        if processes and all(self.last_seen_ns.get(p, -1) >= end_ns for p in processes):
            return "proven"
        return "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One answer and what surrounds it.

    ``operations``: ancestry, the messages that bear on the question, what lies downstream of
    the evidence, every write of every record met, and reads of other turns (``met``) that show
    which of those versions were ever delivered.
    ``histories``: per record (``kind:id``) its writes in order; ``values``: expanded texts by
    reference; ``ancestry``: keys of the answer's ancestors with the answer itself.
    """

    answer: Operation
    flag: Flag
    operations: Mapping[OperationKey, Operation]
    ancestry: frozenset[OperationKey]
    parents: Mapping[OperationKey, tuple[OperationKey, ...]]
    """Ancestry as resolved: consumer -> producers, deliverers and deciders of what it used."""
    histories: Mapping[str, tuple[Write, ...]]
    values: Mapping[str, Value]
    texts: Mapping[str, str]
    turn: frozenset[OperationKey]
    """Operations of the answer's own turn: its trace, whoever delivered what it names in
    ``from``, and reads of the same query shortly before it."""
    evidence: tuple[str, ...]
    evidence_given: bool
    closure: Closure
    lineage: str = "complete"
    """complete, inexact, ambiguous or incomplete."""
    unseen: tuple[str, ...] = ()
    """References of the ancestry that nobody was seen to produce."""
    readable_graphs: frozenset[str] = frozenset()
    """Graphs this answer's operations read: its own and every ``reads`` of the ancestry."""
    related: tuple[str, ...] = ()
    """Other messages that speak of what was asked: the need may have been said more than once."""
    met: frozenset[OperationKey] = frozenset()
    """Reads of other turns. Of these only the versions of records in ``histories`` count."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """References of evidence found only in another graph of the tenant -> that graph."""
