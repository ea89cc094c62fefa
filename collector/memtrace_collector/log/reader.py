"""Reading the log: from any position, up to the durable end, around damage but never silently.

Segments are immutable behind the durable end, so a reader needs no lock and no owner.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from memtrace_collector.log.beginning import Missed, read_beginning
from memtrace_collector.log.durable_end import read_durable_end
from memtrace_collector.log.format import (
    HEAD_BYTES,
    MARKER,
    LogRecord,
    decode_head,
    decode_payload,
)
from memtrace_collector.log.position import LogPosition

logger = logging.getLogger(__name__)

_BUFFER_BYTES = 1 << 20
_SUFFIX = ".log"


class Entry(NamedTuple):
    """A record, where it starts, and where the next one does."""

    position: LogPosition
    next: LogPosition
    record: LogRecord


class Damage(NamedTuple):
    """Bytes that should hold records and do not. They stay where they are."""

    position: LogPosition
    next: LogPosition
    reason: str

    @property
    def size(self) -> int:
        """In bytes; 0 where whole segments are not there."""
        if self.next.segment != self.position.segment:
            return 0
        return self.next.offset - self.position.offset


OnDamage = Callable[[Damage], None]
OnMissed = Callable[[Missed], None]
Wait = Callable[[LogPosition, float], object]
"""Called with the position that was reached and a timeout in seconds; returns when there may
be more."""


def report_damage(damage: Damage) -> None:
    """The default of ``on_damage``: an error in the program's own log."""
    logger.error("log: %d damaged bytes at %s: %s", damage.size, damage.position, damage.reason)


def report_missed(missed: Missed) -> None:
    """The default of ``on_missed``: an error in the program's own log."""
    logger.error("log: %d segments were taken away before they were read", missed.segments)


def segment_path(folder: Path, number: int) -> Path:
    """File of a segment; names sort as numbers do."""
    return folder / f"{number:012d}{_SUFFIX}"


def segment_numbers(folder: Path) -> list[int]:
    """Numbers of the segments in the folder, in order."""
    names = (path.stem for path in folder.glob(f"*{_SUFFIX}"))
    return sorted(int(name) for name in names if name.isdecimal())


def read(
    folder: Path,
    position: LogPosition,
    on_damage: OnDamage = report_damage,
    on_missed: OnMissed = report_missed,
) -> Iterator[Entry]:
    """Entries from ``position`` (one that the log gave out, or before it) to the durable end.

    Damaged stretches, and segments that are not there, are passed to ``on_damage`` and skipped
    to the next intact record. What retention took away is passed to ``on_missed``.
    """
    end = read_durable_end(folder)
    beginning = read_beginning(folder)
    if position < beginning:
        on_missed(Missed(position, beginning))
    if position.segment <= beginning.segment:
        position = LogPosition(beginning.segment + 1, 0)
    numbers = [number for number in segment_numbers(folder) if number >= position.segment]
    expected = max(position.segment, 1)
    for number in numbers:
        if end is not None and number > end.segment:
            return
        if number > expected:
            on_damage(Damage(LogPosition(expected, 0), LogPosition(number, 0), "no such file"))
        expected = number + 1
        start = position.offset if number == position.segment else 0
        limit = end.offset if end is not None and number == end.segment else None
        sealed = end is not None or number != numbers[-1]
        with contextlib.ExitStack() as opened:
            try:
                path = segment_path(folder, number)
                file = opened.enter_context(path.open("rb", buffering=_BUFFER_BYTES))
            except FileNotFoundError:
                continue  # taken away a moment ago
            yield from read_segment(file, LogPosition(number, start), limit, sealed, on_damage)


def received_ns(folder: Path, position: LogPosition, end: LogPosition) -> int | None:
    """When the first request at or behind ``position`` came in; None when there is none before
    ``end``, or no intact head at the place."""
    numbers = [each for each in segment_numbers(folder) if position.segment <= each <= end.segment]
    for number in numbers:
        offset = position.offset if number == position.segment else 0
        place = LogPosition(number, offset)
        with (
            contextlib.suppress(FileNotFoundError),
            segment_path(folder, number).open("rb") as file,
        ):
            file.seek(offset)
            data = file.read(HEAD_BYTES)
            if data and place < end:
                head = decode_head(data, place)
                return head.time_ns if head is not None else None
    return None


def read_segment(
    file: BinaryIO,
    start: LogPosition,
    limit: int | None,
    sealed: bool,
    on_damage: OnDamage = report_damage,
) -> Iterator[Entry]:
    """Entries of one segment between ``start`` and ``limit`` (bytes; None: the file's size).

    ``sealed``: nothing more will be written before the limit, so that an incomplete frame at
    the end is damage; otherwise it may be a write under way, and reading just stops there.
    """
    size = file.seek(0, 2)
    limit = size if limit is None else min(limit, size)
    position = start
    file.seek(start.offset)
    while position.offset < limit:
        entry = _read_frame(file, position, limit)
        if entry is not None:
            yield entry
            position = entry.next
            continue
        following = _resynchronise(file, position, limit)
        if following is None and not sealed:
            return
        damage = Damage(position, following or LogPosition(start.segment, limit), "checksum")
        on_damage(damage)
        position = damage.next
        file.seek(position.offset)


def _read_frame(file: BinaryIO, position: LogPosition, limit: int) -> Entry | None:
    head = decode_head(file.read(HEAD_BYTES), position)
    if head is None or position.offset + head.frame_bytes > limit:
        return None
    record = decode_payload(head, file.read(head.frame_bytes - HEAD_BYTES))
    if record is None:
        return None
    end = LogPosition(position.segment, position.offset + head.frame_bytes)
    return Entry(position, end, record)


def _resynchronise(file: BinaryIO, damaged: LogPosition, limit: int) -> LogPosition | None:
    """Start of the first intact frame after a damaged one."""
    with mmap.mmap(file.fileno(), limit, access=mmap.ACCESS_READ) as data:
        offset = data.find(MARKER, damaged.offset + 1)
        while offset >= 0:
            candidate = LogPosition(damaged.segment, offset)
            head = decode_head(data[offset : offset + HEAD_BYTES], candidate)
            if head is not None and offset + head.frame_bytes <= limit:
                payload = data[offset + HEAD_BYTES : offset + head.frame_bytes]
                if decode_payload(head, payload) is not None:
                    return candidate
            offset = data.find(MARKER, offset + 1)
    return None
