"""Other content in the place of old, in a log that is otherwise append-only: for erasing.

Every frame keeps its place and its size, so that no position changes its meaning. A segment is
replaced as a whole; readers and power cuts see the old one or the new one.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from memtrace_collector.log import files
from memtrace_collector.log.format import LogRecord, encode, frame_bytes
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import Damage, Entry, read_segment, segment_path

Change = Callable[[Entry], LogRecord | None]
"""The record that takes the place of another, as long as that one; None: it stays."""
Wipe = Callable[[bytes], bool]
"""Whether these damaged bytes are to be filled with zeros."""

_COPY_BYTES = 1 << 20


def rewrite_segment(folder: Path, number: int, change: Change, wipe: Wipe) -> int:
    """Change records of a segment that nobody writes any more; how many pieces changed.

    Raises:
        ValueError: a changed record has another size.
        FileNotFoundError: the segment is not there.
    """
    path = segment_path(folder, number)
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as old:
            count = sum(1 for _ in _changes(file, old, number, change, wipe))
            if count:  # each change is made again, so that not all are in memory at once
                files.replace(path, _spliced(old, _changes(file, old, number, change, wipe)))
    return count


def _changes(
    file: BinaryIO, old: mmap.mmap, number: int, change: Change, wipe: Wipe
) -> Iterator[tuple[int, bytes]]:
    """Where something changes, and the bytes that stand there then, in order."""
    damages: list[Damage] = []
    for entry in read_segment(file, LogPosition(number, 0), None, True, damages.append):
        yield from _wiped(old, damages, wipe)
        record = change(entry)
        if record is not None:
            if frame_bytes(record) != entry.next.offset - entry.position.offset:
                raise ValueError(f"a changed record has another size at {tuple(entry.position)}")
            yield entry.position.offset, b"".join(encode(record, entry.position))
    yield from _wiped(old, damages, wipe)


def _wiped(old: mmap.mmap, damages: list[Damage], wipe: Wipe) -> Iterator[tuple[int, bytes]]:
    for damage in damages:
        if wipe(old[damage.position.offset : damage.next.offset]):
            yield damage.position.offset, bytes(damage.size)
    damages.clear()


def _spliced(old: mmap.mmap, changes: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """The old bytes with the changed ones in their places."""
    end = 0
    for offset, data in changes:
        yield from _copied(old, end, offset)
        yield data
        end = offset + len(data)
    yield from _copied(old, end, len(old))


def _copied(old: mmap.mmap, start: int, end: int) -> Iterator[bytes]:
    for first in range(start, end, _COPY_BYTES):
        yield old[first : min(first + _COPY_BYTES, end)]
