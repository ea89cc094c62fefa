"""What a process takes, read from /proc. Linux only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """``pss``: resident bytes, shared pages by share. ``cpu``: seconds. ``files``: open ones."""

    pss: int
    cpu: float
    files: int


NOTHING = Taken(0, 0.0, 0)


def taken(pid: int) -> Taken:
    """Zeros for a process that is gone."""
    process = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError, ValueError):
        rollup = (process / "smaps_rollup").read_text().splitlines()
        pss = next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
        times = (process / "stat").read_text().rpartition(")")[2].split()
        cpu = (int(times[11]) + int(times[12])) / _TICKS
        return Taken(pss * 1024, cpu, len(list((process / "fd").iterdir())))
    return NOTHING
