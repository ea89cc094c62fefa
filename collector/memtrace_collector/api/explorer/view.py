"""What a view of the page is: parameters of its address in, everything that it shows out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from memtrace_collector.api.exploring import Stores
from memtrace_collector.api.questions import Json
from memtrace_collector.errors import WrongUseError

Parameters: TypeAlias = Mapping[str, str]
View: TypeAlias = Callable[[Stores, Parameters], Json]
"""Reads the stores of one tenant. Texts are given as they were captured: the page shows them as
text and nothing else.

Raises:
    WrongUseError: a parameter is missing or malformed.
    NotFoundError: what is asked for is not known.
"""


def needed(parameters: Parameters, name: str) -> str:
    """A parameter that must be there.

    Raises:
        WrongUseError: it is not, or is empty.
    """
    value = parameters.get(name, "")
    if not value:
        raise WrongUseError(f"the parameter {name} is missing")
    return value
