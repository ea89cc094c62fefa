"""What a benchmark case is before, and what is known of it after, a pipeline has run it."""

from __future__ import annotations

from dataclasses import dataclass, field

from memtrace_collector.bench.dialogue import Message, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Planting:
    """A fault that a pipeline is to make: its kind (:mod:`faults`) and where."""

    kind: str
    message: str = ""
    """Id of the message concerned, where the fault is about one."""
    detail: dict[str, str] = field(default_factory=dict)
    """What the kind needs: ``old`` and ``new`` words, another owner, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """One question over one window of one dialogue, in one system.

    Without plantings it is a control: the right answer, flagged all the same.
    """

    id: str
    system: str
    dialogue: str
    owner: str
    messages: tuple[Message, ...]
    question: Question
    plantings: tuple[Planting, ...]
    held_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The operation at which a planting took effect, as the pipeline itself saw it happen."""

    kind: str
    error_type: str
    trace_id: str
    span_id: str
    """Both empty where the decision table names no operation (never_told, not_memory)."""
    role: str = "decisive"
    """decisive, or also: its repair alone would have been enough too, but it is not the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One case as it ran. It counts only when :attr:`counts` holds."""

    case: PlannedCase
    graph_id: str
    trace_id: str
    span_id: str
    """The answer's span."""
    clean_reply: str
    """What the same pipeline answered to the same question without the plantings."""
    clean_right: bool
    reply: str
    right: bool
    truths: tuple[Truth, ...]
    expected: str
    """What the flag gives as expected; differs from the question's for a wrong reference."""
    flag_source: str = "evaluator"
    skipped: str = ""
    """Why the case could not be run as planned; empty: it ran."""

    @property
    def counts(self) -> bool:
        """A planted fault that does not change a right answer into a wrong one is no case."""
        if self.skipped or not self.clean_right or not self.truths:
            return False
        return self.right == all(t.error_type == "bad_judge" for t in self.truths)
