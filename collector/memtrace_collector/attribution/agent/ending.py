"""The two ways in which an exploration ends, and what makes a named operation acceptable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from memtrace_collector.attribution.agent.rows import ROWS
from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.graph.case import Case
from memtrace_collector.graph.closure import processes_of
from memtrace_collector.graph.facts import OperationKey
from memtrace_collector.graph.references import named_by

MAX_EVIDENCE = 8
MAX_REASON = 600

Missing = Literal["gap", "sampled", "cut", "no_content", "unseen_writer", "clock", "retention"]
_Hex = Annotated[str, msgspec.Meta(max_length=32, description="Lower-case hex digits.")]


class NameOperation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End by naming the one operation of this case at which the needed information was lost,
    and how. Refused when it is none of this case, or the type does not fit its step."""

    trace_id: _Hex
    span_id: _Hex
    error_type: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(ROWS)})]
    reason: Annotated[
        str, msgspec.Meta(min_length=1, max_length=MAX_REASON, description="In two sentences.")
    ]
    evidence: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=1_000)]],
        msgspec.Meta(
            min_length=1,
            max_length=MAX_EVIDENCE,
            description="References of this case that show it, such as the message that says it.",
        ),
    ]

    @property
    def key(self) -> OperationKey:
        return OperationKey(self.trace_id, self.span_id)


class Abstain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End without naming an operation: what is recorded does not show it, or no operation of
    memory is to blame. An honest abstention is better than a guess."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REASON)]
    missing: Annotated[
        list[Missing],
        msgspec.Meta(
            max_length=7,
            description="What would be needed: gap (spans were lost), sampled, cut (values were "
            "shortened), no_content (texts were not captured), unseen_writer, clock, retention.",
        ),
    ] = []


def objections(case: Case, named: NameOperation) -> Iterator[str]:
    """Why this operation cannot stand, in words for who named it; none: it can."""
    operation, row = case.operations.get(named.key), ROWS.get(named.error_type)
    if operation is None:
        yield f"{named.key} is no operation of this case; `ancestry` and `impact` list operations"
    if row is None:
        yield f"{named.error_type!r} is none of {', '.join(ROWS)}"
    if operation is None or row is None:
        return
    if operation.composite:
        yield f"{named.key} ({operation.step}) is a composite parent; name the stage inside it"
    if operation.step not in row.steps:
        yield (
            f"{named.error_type} cannot happen at the step {operation.step}, only at "
            f"{', '.join(sorted(row.steps))}"
        )
    if operation.start_ns > case.answer.end_ns and STAGE_OF[named.error_type] != "not_memory":
        yield f"{named.key} began after the answer had been given"
    known = {ref for item in case.operations.values() for ref in named_by(item)}
    for ref in named.evidence:
        if ref not in known:
            yield f"no operation of this case names {ref}"
    if row.is_absence and absence(case) == "broken":
        yield (
            f"{named.error_type} says that something did not happen, but spans of that time are "
            "known to be lost; name what can be shown, or abstain with gap"
        )


def absence(case: Case) -> str:
    """What may be said of what did not happen up to the answer, over all its processes."""
    operations = [item for item in case.operations.values() if item.start_ns <= case.answer.end_ns]
    start_ns = min((item.start_ns for item in operations), default=0)
    return case.closure.absence(start_ns, case.answer.end_ns, processes_of(operations))
