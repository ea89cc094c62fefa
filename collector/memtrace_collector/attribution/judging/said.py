"""What a person says about a verdict, and whether that can be said of its case. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from memtrace_collector.attribution.verdict import STAGE_OF
from memtrace_collector.errors import WrongUseError
from memtrace_collector.graph.facts import Operation, OperationKey, by_time
from memtrace_collector.graph.questions.shapes import check_reference, is_span, parse_answer

MAX_NOTE_CHARACTERS = 2_000
MAX_NAME_CHARACTERS = 100
MAX_DECISIVE = 8
WITHOUT_OPERATION = frozenset(("never_told", "bad_reference", "insufficient_evidence"))
"""Types of which no operation is decisive."""
MAYBE_WITHOUT_OPERATION = frozenset(("bad_judge", "unrelated"))
"""Types that name the recorded judge, or the failed call, where there is one."""

CONFIRM: Final = "confirm"
CORRECT: Final = "correct"
WITHDRAW: Final = "withdraw"
_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME_CHARACTERS)]
_Reference = Annotated[str, msgspec.Meta(max_length=1_000)]


class Said(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One judgement as it is given.

    A confirmation and a withdrawal need nothing but ``action``; a correction says the whole
    verdict: what is left out is none.
    """

    action: Literal["confirm", "correct", "withdraw"]
    revision: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Which revision of the verdict was looked at; 0: whichever is current."""
    type: _Name = ""
    stage: _Name = ""
    """Follows from the type; given, it must fit."""
    decisive: Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_DECISIVE)] = ()
    """``TRACE:SPAN`` of each decisive operation."""
    last_right: _Reference | None = None
    first_wrong: _Reference | None = None
    note: Annotated[str, msgspec.Meta(max_length=MAX_NOTE_CHARACTERS)] = ""
    """Why. Content: it may quote what was captured."""
    by: _Name = ""
    """Who, in whatever form they are known."""


def read(given: Mapping[str, Any]) -> Said:
    """A judgement from JSON.

    Raises:
        WrongUseError: it is none.
    """
    try:
        return msgspec.convert(dict(given), Said)
    except msgspec.ValidationError as error:
        raise WrongUseError(f"not a judgement: {error}") from None


def corrected(said: Said, operations: Mapping[OperationKey, Operation]) -> list[Operation]:
    """The decisive operations that a correction names, in the order in which they ran.

    Args:
        said: the correction.
        operations: of the case.

    Raises:
        WrongUseError: there is no such type, or it does not fit the stage or the operations.
    """
    if said.type not in STAGE_OF:
        raise WrongUseError(f"{said.type!r} is no type of error; one of {', '.join(STAGE_OF)}")
    if said.stage not in ("", STAGE_OF[said.type]):
        raise WrongUseError(f"{said.type} is a type of the stage {STAGE_OF[said.type]}")
    for reference in (said.last_right, said.first_wrong):
        if reference is not None:
            check_reference(reference)
    _check_count(said)
    found = {each.key: each for text in said.decisive for each in [_named(text, operations)]}
    return sorted(found.values(), key=by_time)


def _check_count(said: Said) -> None:
    if said.decisive and said.type in WITHOUT_OPERATION:
        raise WrongUseError(f"{said.type} has no decisive operation")
    needs_one = said.type not in WITHOUT_OPERATION | MAYBE_WITHOUT_OPERATION
    if needs_one and not said.decisive:
        raise WrongUseError(f"{said.type} happens at an operation: name the decisive one")


def _named(text: str, operations: Mapping[OperationKey, Operation]) -> Operation:
    if not is_span(text):
        raise WrongUseError(f"{text!r} is not TRACE:SPAN: 32 hex digits, a colon and 16 hex digits")
    operation = operations.get(parse_answer(text))
    if operation is None:
        raise WrongUseError(f"{text} is no operation of this case")
    stages = [each for each in operations.values() if _is_below(each, operation)]
    if operation.composite and stages:
        names = ", ".join(f"{each.name} {each.trace_id}:{each.span_id}" for each in stages[:4])
        raise WrongUseError(f"{text} is made of stages, one of which is decisive: {names}")
    return operation


def _is_below(operation: Operation, parent: Operation) -> bool:
    return (operation.trace_id, operation.parent_span_id) == parent.key
