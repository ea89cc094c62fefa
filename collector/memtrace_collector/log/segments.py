"""The durable log: segment files of untouched requests, group-committed before the reply.

One writer thread takes everything that is queued, writes it with one ``writev`` and makes it
durable with one ``fdatasync``; only then are the futures of those records resolved. A failed
commit fails its records, cuts the segment back to what is durable, and the next commit starts
a new segment: after a failed sync the kernel may drop dirty pages and report success.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memtrace_collector.log import files
from memtrace_collector.log.durable_end import DurableEnd
from memtrace_collector.log.errors import LogInUseError, LogOverloadedError, LogUnavailableError
from memtrace_collector.log.format import LogRecord, encode, frame_bytes
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import (
    Damage,
    OnDamage,
    read_segment,
    report_damage,
    segment_numbers,
    segment_path,
)
from memtrace_collector.log.room import DiskRoom
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics

logger = logging.getLogger(__name__)

SEGMENT_BYTES = 64 << 20
MAX_QUEUED_BYTES = 64 << 20
MAX_QUEUED_RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class _Queued:
    record: LogRecord
    size: int
    future: Future[LogPosition]


class Recovered(NamedTuple):
    """What opening the log found. ``torn_bytes``: an unacknowledged tail that was cut off."""

    end: LogPosition
    torn_bytes: int


class SegmentLog:
    """The writer's end of a log folder; one owner at a time.

    Args:
        folder: made when missing; holds nothing but the log.
        segment_bytes: a segment that has reached this size is followed by a new one.
        fsync: False only where losing acknowledged data is acceptable (tests, imports).
        max_queued_bytes, max_queued_records: bounds of what waits for the disk.
        room: what the disk still has for the log; default: all but the usual reserve.

    Raises:
        LogInUseError: another process owns the folder.
        OSError: the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        fsync: bool = True,
        max_queued_bytes: int = MAX_QUEUED_BYTES,
        max_queued_records: int = MAX_QUEUED_RECORDS,
        room: DiskRoom | None = None,
        metrics: Metrics = NULL_METRICS,
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self._metrics = metrics
        with contextlib.ExitStack() as opened:
            opened.callback(os.close, _take_ownership(folder))
            self.recovered = recover(folder)
            self._durable_end = DurableEnd(folder)
            opened.callback(self._durable_end.close)
            self._end = self.recovered.end
            self._durable_end.publish(self._end)
            self._opened = opened.pop_all()
        metrics.add("memtrace.log.torn", self.recovered.torn_bytes)
        self._writer = _SegmentWriter(folder, self._end.segment, segment_bytes, fsync)
        self._max_bytes = max_queued_bytes
        self._max_records = max_queued_records
        self._queue: deque[_Queued] = deque()
        self._queued_bytes = 0
        self._writing_bytes = 0
        self._room = room or DiskRoom(folder)
        self._closing = False
        self._changed = threading.Condition()
        self._grown = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="memtrace-log", daemon=True)
        self._thread.start()

    def append(self, record: LogRecord) -> Future[LogPosition]:
        """Queue a record. The future gives its position once it is on disk.

        The future fails with :class:`LogUnavailableError` when the disk refused; cancelling it
        before its commit starts takes the record back.

        Raises:
            LogOverloadedError: the queue is full.
            LogUnavailableError: the log is closed, or the disk nearly full.
            ValueError: the record is too long for a frame.
        """
        queued = _Queued(record, frame_bytes(record), Future())
        with self._changed:
            if self._closing:
                raise LogUnavailableError("the log is closed")
            full = self._queued_bytes + queued.size > self._max_bytes and self._queue
            if full or len(self._queue) >= self._max_records:
                self._metrics.add("memtrace.log.refused", 1, reason="overloaded")
                raise LogOverloadedError(f"{self._queued_bytes} bytes wait for the disk")
            if not self._room.take(queued.size, self._queued_bytes + self._writing_bytes):
                self._metrics.add("memtrace.log.refused", 1, reason="disk_nearly_full")
                raise LogUnavailableError("the disk is nearly full")
            self._queue.append(queued)
            self._queued_bytes += queued.size
            self._changed.notify()
        return queued.future

    @property
    def end(self) -> LogPosition:
        """Everything before this position is on disk."""
        return self._end

    def wait(self, position: LogPosition, timeout: float) -> bool:
        """Block until there is something durable behind ``position``; False on time-out."""
        with self._grown:
            return self._grown.wait_for(lambda: self._end > position or self._closing, timeout)

    def close(self) -> None:
        """Commit what is queued, then give the folder up. Idempotent."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify()
        self._thread.join()
        with self._grown:
            self._grown.notify_all()
        self._writer.close()
        self._opened.close()

    def _run(self) -> None:
        while self._commit_next():
            """Between two commits nothing is held of the last one."""

    def _commit_next(self) -> bool:
        """False when there will be no more."""
        batch = self._next_batch()
        self._commit([queued for queued in batch if _claimed(queued)])
        return bool(batch)

    def _next_batch(self) -> list[_Queued]:
        """Everything queued; empty only when closing and drained."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            batch = list(self._queue)
            self._queue.clear()
            self._writing_bytes, self._queued_bytes = self._queued_bytes, 0
        return batch

    def _commit(self, batch: list[_Queued]) -> None:
        if not batch:
            return
        try:
            positions, end = self._write([queued.record for queued in batch])
        except Exception as error:
            self._metrics.add("memtrace.log.refused", len(batch), reason="unavailable")
            logger.error("log: %d records refused: %s", len(batch), error)
            for queued in batch:
                queued.future.set_exception(
                    LogUnavailableError(f"the log cannot be written: {error}")
                )
            return
        self._durable_end.publish(end)
        with self._grown:
            self._end = end
            self._grown.notify_all()
        self._metrics.add("memtrace.log.commits", 1)
        self._metrics.add("memtrace.log.records", len(batch))
        self._metrics.add("memtrace.log.written", sum(queued.size for queued in batch))
        for queued, position in zip(batch, positions):
            queued.future.set_result(position)

    def _write(self, records: list[LogRecord]) -> tuple[list[LogPosition], LogPosition]:
        """A control record ends its segment: what an order is about is never written to again."""
        written = self._writer.write(records)
        if any(record.signal == "control" for record in records):
            self._writer.close()
        return written


class _SegmentWriter:
    """The files behind the log: which segment is open and how much of it is durable."""

    def __init__(self, folder: Path, segment: int, segment_bytes: int, fsync: bool) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._fsync = fsync
        self._segment = segment
        self._fd: int | None = None
        self._durable = 0
        self._dirty = False

    def write(self, records: list[LogRecord]) -> tuple[list[LogPosition], LogPosition]:
        """Write records behind one another and sync them; their positions and the new end.

        All or none: after an exception none of them will be read back.
        """
        if self._dirty:
            self._cut()
        self._dirty = True
        fd = self._writable()
        positions: list[LogPosition] = []
        parts: list[bytes] = []
        offset = self._durable
        for record in records:
            position = LogPosition(self._segment, offset)
            frame = encode(record, position)
            positions.append(position)
            parts += frame
            offset += sum(map(len, frame))
        files.write_all(fd, parts)
        if self._fsync:
            files.sync(fd)
        self._durable = offset
        self._dirty = False
        return positions, LogPosition(self._segment, offset)

    def close(self) -> None:
        """Give up the open segment; the next record starts a new one."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _cut(self) -> None:
        """Give up the open segment at its durable end."""
        if self._fd is not None:
            files.cut(self._fd, self._durable)
            self.close()
        self._dirty = False

    def _writable(self) -> int:
        """The open segment, or a new one behind it when it is full or given up."""
        if self._fd is not None and self._durable < self._segment_bytes:
            return self._fd
        self.close()
        self._fd, self._durable = files.create(segment_path(self._folder, self._segment + 1)), 0
        self._segment += 1
        if self._fsync:
            files.sync_folder(self._folder)
        return self._fd


def recover(folder: Path, on_damage: OnDamage = report_damage) -> Recovered:
    """Find the end of a log that nobody is writing, and cut off a torn tail.

    Only the last segment can have one. Whatever stands there intact is made durable, so
    that readers may build on it. The next append starts a new segment: no position behind a
    cut is ever given out twice.
    """
    numbers = segment_numbers(folder)
    if not numbers:
        return Recovered(START, 0)
    last = numbers[-1]
    path = segment_path(folder, last)
    with path.open("r+b") as file:
        end = LogPosition(last, 0)

        def skip(damage: Damage) -> None:
            nonlocal end
            on_damage(damage)
            end = damage.next

        for entry in read_segment(file, LogPosition(last, 0), None, sealed=False, on_damage=skip):
            end = entry.next
        torn = file.seek(0, os.SEEK_END) - end.offset
        if torn:
            logger.warning("log segment %d: cut a torn tail of %d bytes", last, torn)
            files.cut(file.fileno(), end.offset)
        else:
            os.fsync(file.fileno())
    files.sync_folder(folder)
    return Recovered(end, torn)


def _claimed(queued: _Queued) -> bool:
    """False when the sender went away before its commit."""
    return queued.future.set_running_or_notify_cancel()


def _take_ownership(folder: Path) -> int:
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise LogInUseError(f"{folder} is in use by another process") from error
    return fd
