"""How far a person and the machine agree on a case. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONFIRMED, STAGE, OPERATION, TYPE = "confirmed", "stage", "operation", "type"
AGREEMENTS = (CONFIRMED, OPERATION, TYPE, STAGE)


def agreement(human: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """The coarsest part of the machine's verdict (JSON form) that a person's corrects.

    ``stage``: its stage; ``operation``: the stage holds, the decisive operations are others;
    ``type``: both hold, and only the type is another; ``confirmed``: all of it holds. So the
    machine's operation was right in ``confirmed`` and ``type``, its stage in all but ``stage``.
    """
    if human["stage"] != machine["stage"]:
        return STAGE
    if _operations(human) != _operations(machine):
        return OPERATION
    return CONFIRMED if human["error_type"] == machine["error_type"] else TYPE


def _operations(verdict: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((each["traceId"], each["spanId"]) for each in verdict["decisive"])
