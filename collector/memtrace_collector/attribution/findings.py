"""What a row of the decision table says when it holds. Pure values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memtrace_collector.attribution.verdict import STAGE_OF, Claim, Decisive
from memtrace_collector.graph.facts import Operation, OperationKey

STRUCTURE = "structure"
TEXT = "text"
SCORES = {(STRUCTURE,): 0.95, (STRUCTURE, TEXT): 0.9, (TEXT,): 0.75}
"""Starting score by what a finding rests on; lowered by what weakens it."""


class Window(NamedTuple):
    """Where something did not happen: nanoseconds, and the processes that would have done it."""

    start_ns: int
    end_ns: int
    processes: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row that holds for one needed item.

    ``window`` is set when the row claims an absence: it stands only if nothing was lost there.
    """

    error_type: str
    decisive: tuple[OperationKey, ...] = ()
    last_right: str | None = None
    first_wrong: str | None = None
    aspect: str | None = None
    mechanism: str | None = None
    also: tuple[Decisive, ...] = ()
    basis: tuple[str, ...] = (STRUCTURE, TEXT)
    weight: float = 1.0
    claims: tuple[Claim, ...] = ()
    window: Window | None = None
    missing: tuple[str, ...] = ()

    @property
    def stage(self) -> str:
        return STAGE_OF[self.error_type]

    @property
    def score(self) -> float:
        return SCORES.get(self.basis, 0.7) * self.weight

    def operations(self) -> tuple[Decisive, ...]:
        """The decisive operations in the verdict's form."""
        return tuple(
            Decisive(
                operation=key,
                error_type=self.error_type,
                last_right=self.last_right,
                first_wrong=self.first_wrong,
            )
            for key in self.decisive
        )


def abstain(*missing: str, claims: Sequence[Claim] = ()) -> Finding:
    """It cannot be shown; ``missing`` says why (empty: the texts leave it open)."""
    return Finding(
        error_type="insufficient_evidence",
        missing=missing,
        claims=tuple(claims),
        basis=(STRUCTURE,),
        weight=0.0,
    )


def claim(says: str, operation: Operation | None = None, ref: str | None = None) -> Claim:
    """One supported sentence."""
    return Claim(ref=ref, says=says, span=operation.key if operation else None)


def at(
    operation: Operation, error_type: str, last_right: str | None, first_wrong: str | None = None
) -> Decisive:
    """Another operation whose repair alone would have been enough."""
    return Decisive(
        operation=operation.key,
        error_type=error_type,
        last_right=last_right,
        first_wrong=first_wrong,
    )
