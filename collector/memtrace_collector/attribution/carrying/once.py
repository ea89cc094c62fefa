"""Results that rows share: worked out once for a view, or for one item sought in it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_Of = TypeVar("_Of")
_Result = TypeVar("_Result")


def once(function: Callable[[_Of], _Result]) -> Callable[[_Of], _Result]:
    """Keep what ``function`` returned in its argument, which must not change, as
    ``functools.cached_property`` does."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def kept(of: _Of) -> _Result:
        known = vars(of)
        if name not in known:
            known[name] = function(of)
        result: _Result = known[name]
        return result

    return kept
