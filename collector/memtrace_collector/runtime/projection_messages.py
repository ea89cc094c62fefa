"""What the owner of a folder and the process that projects it say to each other.

JSON, one message a line: down the child's standard input :class:`Start`, then at most one
:class:`Stop`; up its standard output :class:`Ready` or :class:`Failed`, then :class:`Report`.
The end of its input without a :class:`Stop` means that the owner is gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Start(Struct, frozen=True, kw_only=True, tag=True):
    """What is projected, and how.

    ``folder``: absolute. ``database``: where facts go instead of there, with its password.
    ``values_days``: how long values are kept, 0 for ever.
    """

    folder: str
    database: str
    markers: tuple[str, ...]
    thresholds: Mapping[str, float]
    log_level: int
    values_days: float = 0.0


class Stop(Struct, frozen=True, kw_only=True, tag=True):
    """Project what is on disk by now, for at most so long, and end."""

    seconds: float


class Ready(Struct, frozen=True, tag=True):
    """The stores are open and up to date in their schema."""


class Failed(Struct, frozen=True, kw_only=True, tag=True):
    """The stores cannot be opened. ``kind``: name of the class in ``errors``."""

    kind: str
    message: str


class Count(Struct, frozen=True, array_like=True):
    """So much is to be added to a counter."""

    name: str
    attributes: Mapping[str, str]
    value: float


class Spread(Struct, frozen=True, array_like=True):
    """These values, counted by bucket, are to be added to a histogram. ``buckets``: index and
    count of those that are not empty."""

    name: str
    attributes: Mapping[str, str]
    buckets: tuple[tuple[int, int], ...]
    sum: float
    least: float
    greatest: float


class Report(Struct, frozen=True, kw_only=True, tag=True):
    """Since the last report. ``failing``: the last pass failed, and is tried again."""

    counts: tuple[Count, ...]
    failing: bool
    spreads: tuple[Spread, ...] = ()
