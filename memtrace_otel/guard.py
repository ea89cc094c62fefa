"""The one boundary between this package's faults and the host program.

A fault of ours is logged once per kind and swallowed; under MEMTRACE_RAISE_INTERNAL=1 it is
raised, so that tests see it. The host's own exceptions never pass through here: guarded code
runs beside the host's calls, not around them.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from memtrace_otel.environment_variables import MEMTRACE_RAISE_INTERNAL

logger = logging.getLogger("memtrace_otel")

P = ParamSpec("P")
R = TypeVar("R")

_MAX_KINDS = 200
_reported: set[str] = set()


def report(kind: str, message: str, *args: object, exc_info: BaseException | None = None) -> None:
    """Log ``message`` as a warning, the first time that ``kind`` happens in this process."""
    if kind in _reported or len(_reported) >= _MAX_KINDS:
        return
    _reported.add(kind)
    logger.warning(message, *args, exc_info=exc_info)


def handle(error: Exception, where: str) -> None:
    """Report a fault of ours, or raise it when tests ask for that."""
    if os.environ.get(MEMTRACE_RAISE_INTERNAL) == "1":
        raise error
    report(
        f"{where}:{type(error).__qualname__}",
        "memtrace_otel: %s failed; telemetry may be incomplete",
        where,
        exc_info=error,
    )


def guarded(function: Callable[P, R]) -> Callable[P, R | None]:
    """Wrap ``function`` so that its own faults give ``None`` instead of reaching the host."""
    where = function.__qualname__

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            handle(error, where)
            return None

    return wrapper


class guard:  # noqa: N801  # reads as a statement: `with guard("…"):`
    """Context manager form of :func:`guarded`; ``where`` names the guarded work in the log."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        handle(error, self._where)
        return True
