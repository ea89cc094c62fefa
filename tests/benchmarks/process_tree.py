"""CPU time and memory of a process and its descendants, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_UTIME, _STIME, _RSS = 11, 12, 21
"""Fields of /proc/PID/stat, counted behind the name."""


class Usage(NamedTuple):
    """By process: CPU seconds since the start, of all threads, and resident MB."""

    seconds: dict[int, float]
    resident: dict[int, float]

    @property
    def cpu(self) -> float:
        return sum(self.seconds.values())

    @property
    def megabytes(self) -> float:
        return sum(self.resident.values())


def usage(pid: int) -> Usage:
    """Of the process and all its descendants that live."""
    seconds: dict[int, float] = {}
    resident: dict[int, float] = {}
    for member in tree(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
            seconds[member] = (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS
            resident[member] = int(fields[_RSS]) * _PAGE / 1e6
    return Usage(seconds, resident)


def tree(pid: int) -> Iterator[int]:
    """The process, then its descendants."""
    waiting = [pid]
    while waiting:
        member = waiting.pop()
        yield member
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{member}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
