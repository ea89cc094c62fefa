"""The address of a record in the durable log."""

from __future__ import annotations

from typing import NamedTuple


class LogPosition(NamedTuple):
    """Where a record of the durable log starts; ordered as the log is.

    Segments are numbered from 1, so ``START`` lies before every record.
    """

    segment: int
    offset: int


START = LogPosition(0, 0)
ELSEWHERE = LogPosition(-1, -1)
"""In another log than the one that is asked about; equal to no position of any log."""
