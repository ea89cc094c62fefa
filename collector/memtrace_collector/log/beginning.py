"""Where a log begins: behind the segments that retention has taken away.

The place is written, durably, before a segment goes, so that a reader that stands before it
knows that it missed something, and one that stands behind it knows that it did not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.log import files
from memtrace_collector.log.position import START, LogPosition

FILE_NAME = "beginning"


class Missed(NamedTuple):
    """What a reader can no longer read: from where it stood to where the log begins."""

    position: LogPosition
    beginning: LogPosition

    @property
    def segments(self) -> int:
        """How many segments it missed, the one it stood in included."""
        return self.beginning.segment - max(self.position.segment, 1) + 1


def read_beginning(folder: Path) -> LogPosition:
    """The end of the last segment that was taken away; ``START`` when none was.

    Also when the file was damaged: segments that are gone are then reported as not there.
    """
    try:
        segment, offset = json.loads((folder / FILE_NAME).read_bytes())
        return LogPosition(int(segment), int(offset))
    except (FileNotFoundError, ValueError, TypeError):
        return START


def write_beginning(folder: Path, position: LogPosition) -> None:
    """Say that everything before ``position`` is gone, before it goes."""
    files.replace(folder / FILE_NAME, [json.dumps(position).encode()])
