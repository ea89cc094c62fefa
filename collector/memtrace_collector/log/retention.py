"""How long the log is kept: whole segments go, oldest first, and never what is still needed.

A segment goes when it is too old, or the log too large, and everything in it is projected and
forwarded. Only the bound of the size takes what is not forwarded; nothing takes what is not
projected, nor the segment that is being written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from memtrace_collector.log import files
from memtrace_collector.log.beginning import read_beginning, write_beginning
from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import segment_numbers, segment_path
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

logger = logging.getLogger(__name__)

CHECK_SECONDS = 30.0
_NS = 1_000_000_000

Reason = Literal["age", "size", "not_forwarded"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the log. 0: none."""

    seconds: float = 0.0
    size: int = 0
    """In bytes."""


class Segment(NamedTuple):
    """A segment file. ``changed_ns``: when it was last written, since the Unix epoch."""

    number: int
    size: int
    changed_ns: int

    @property
    def end(self) -> LogPosition:
        return LogPosition(self.number, self.size)


class Readers(NamedTuple):
    """How far the log was read. ``forwarded``: None where nothing is sent on."""

    projected: LogPosition
    forwarded: LogPosition | None = None


def expired(
    segments: Iterable[Segment], readers: Readers, limits: Limits, now_ns: int
) -> Iterator[tuple[Segment, Reason]]:
    """The segments that go, and why, oldest first. ``segments``: those that are complete."""
    segments = list(segments)
    total = sum(segment.size for segment in segments)
    for segment in segments:
        age_ns = now_ns - segment.changed_ns
        is_old = bool(limits.seconds) and age_ns > limits.seconds * _NS
        is_over = bool(limits.size) and total > limits.size
        is_forwarded = readers.forwarded is None or readers.forwarded >= segment.end
        if readers.projected < segment.end or not (is_over or (is_old and is_forwarded)):
            return
        if not is_forwarded:
            yield segment, "not_forwarded"
        else:
            yield segment, "age" if is_old else "size"
        total -= segment.size


class LogRetention:
    """Takes segments away; runs beside the log in the process that owns it.

    Args:
        end: ``SegmentLog.end``, asked each time.
        readers: how far projection and forwarding are, asked each time.
        metrics: counts ``memtrace.log.expired`` (bytes) by reason.
        clock_ns: nanoseconds since the Unix epoch.
    """

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        *,
        end: Callable[[], LogPosition],
        readers: Callable[[], Readers],
        metrics: Metrics = NULL_METRICS,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._end = end
        self._readers = readers
        self._metrics = metrics
        self._clock_ns = clock_ns

    def run(self, stop: threading.Event) -> None:
        """Look every ``CHECK_SECONDS`` until ``stop``."""
        passes = Passes(
            "segments of the log could not be taken away",
            "memtrace.log.retention_failures",
            self._metrics,
            pause_seconds=CHECK_SECONDS,
        )
        passes.run(self._pass, stop)

    def run_once(self) -> int:
        """Take away what is expired; how many segments went."""
        open_segment = self._end().segment
        beginning = read_beginning(self._folder).segment
        numbers = [n for n in segment_numbers(self._folder) if n < open_segment]
        kept = [self._segment(number) for number in numbers if number > beginning]
        going = list(expired(kept, self._readers(), self._limits, self._clock_ns()))
        if going:
            write_beginning(self._folder, going[-1][0].end)
            beginning = going[-1][0].number
        self._remove(number for number in numbers if number <= beginning)
        for segment, reason in going:
            self._metrics.add("memtrace.log.expired", segment.size, reason=reason)
            if reason == "not_forwarded":
                logger.error("log segment %d goes without having been forwarded", segment.number)
        return len(going)

    def _pass(self) -> float:
        self.run_once()
        return CHECK_SECONDS

    def _segment(self, number: int) -> Segment:
        found = segment_path(self._folder, number).stat()
        return Segment(number, found.st_size, found.st_mtime_ns)

    def _remove(self, numbers: Iterable[int]) -> None:
        """Also those that an earlier pass announced and, ended in between, left behind."""
        paths = [segment_path(self._folder, number) for number in numbers]
        for path in paths:
            files.remove(path)
        if paths:
            files.sync_folder(self._folder)
