"""What is read when somebody scrapes: lag, depths, and what the stores say now.

Names and attributes: ``memtrace.projection.lag`` and ``memtrace.forward.lag`` (bytes of the
log), ``memtrace.outbox.depth`` {state}, ``memtrace.cases`` {state},
``memtrace.answers.flagged`` {source}, ``memtrace.verdicts`` {stage, type, method},
``memtrace.invariants`` {kind}, ``memtrace.store.wal`` {file}: facts, values, text, cases.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import segment_numbers, segment_path
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.stores import CASES_FILE, FACTS_FILE
from memtrace_collector.runtime.tenants import Tenants
from memtrace_collector.store.sqlite_facts import files_of
from memtrace_collector.telemetry.prometheus import Reading, Telemetry

STORE_SECONDS = 5.0
REST_FACTOR = 20.0
Key = TypeVar("Key", bound=Hashable)

_SOURCES = frozenset(("user", "evaluator", "dataset", "operator"))


def install(
    telemetry: Telemetry, data: DataFolder | None, tenants: Tenants, forward_cursor: str | None
) -> None:
    """Register every gauge; what tenants have is told of all of them together.

    ``data``: None without a log. ``forward_cursor``: cursor of the destination, when there is one.
    """
    if data is not None:
        folder = data.log_folder.parent
        _install_lags(telemetry, data, forward_cursor)
        telemetry.gauge(
            "memtrace.store.wal",
            "Size of SQLite's write-ahead logs: one that grows is held by a reader that stays.",
            lambda: wal_bytes(folder),
        )
    telemetry.gauge(
        "memtrace.outbox.depth",
        "Verdict deliveries by state.",
        lambda: _by("state", _sum(each.cases.outbox_counts() for each in tenants.data())),
    )
    telemetry.gauge(
        "memtrace.cases",
        "Flagged answers by state: unresolved, waiting, judged, set_aside.",
        lambda: _by("state", _sum(each.cases.queue_counts() for each in tenants.data())),
    )
    telemetry.gauge(
        "memtrace.invariants",
        "Broken memory invariants.",
        lambda: _by("kind", tenants.findings()),
    )
    for name, description, read in (
        ("memtrace.answers.flagged", "Flags by source.", _flags),
        ("memtrace.verdicts", "Current verdicts.", _verdicts),
    ):
        telemetry.gauge(name, description, _Cached(read, tenants))


def _install_lags(telemetry: Telemetry, data: DataFolder, forward_cursor: str | None) -> None:
    telemetry.gauge(
        "memtrace.projection.lag",
        "Bytes of the log that are not projected yet.",
        lambda: _lag(data, data.facts.cursor()),
    )
    if forward_cursor is not None:
        telemetry.gauge(
            "memtrace.forward.lag",
            "Bytes of the log that are not forwarded yet.",
            lambda: _lag(data, data.cases.cursor(forward_cursor)),
        )


def wal_bytes(folder: Path) -> list[Reading]:
    """Of each store that is a file in the folder."""
    files = {**files_of(folder / FACTS_FILE)._asdict(), "cases": folder / CASES_FILE}
    return [
        Reading(_size(path.with_name(f"{path.name}-wal")), {"file": name})
        for name, path in files.items()
        if path.exists()
    ]


class _Cached:
    """Reads at most every ``STORE_SECONDS``, and rests so many times as long as reading took; a
    scrape in between sees the same again."""

    def __init__(self, read: Callable[[Tenants], Iterable[Reading]], tenants: Tenants) -> None:
        self._read = read
        self._tenants = tenants
        self._lock = threading.Lock()
        self._readings: list[Reading] = []
        self._due = 0.0

    def __call__(self) -> list[Reading]:
        with self._lock:
            if time.monotonic() >= self._due:
                began = time.monotonic()
                self._readings = list(self._read(self._tenants))
                ended = time.monotonic()
                self._due = ended + max(STORE_SECONDS, REST_FACTOR * (ended - began))
            return self._readings


def _flags(tenants: Tenants) -> list[Reading]:
    counts: Counter[str] = Counter()
    for source, count in _sum(each.facts.flag_counts() for each in tenants.data()).items():
        counts[source if source in _SOURCES else "other"] += count
    return _by("source", counts)


def _verdicts(tenants: Tenants) -> list[Reading]:
    counts = _sum(each.cases.verdict_counts() for each in tenants.data())
    return [
        Reading(count, {"stage": stage, "type": error_type, "method": method})
        for (stage, error_type, method), count in counts.items()
    ]


def _sum(counted: Iterable[Mapping[Key, int]]) -> Counter[Key]:
    counts: Counter[Key] = Counter()
    for each in counted:
        counts.update(each)
    return counts


def _by(attribute: str, counts: Counter[str]) -> list[Reading]:
    return [Reading(count, {attribute: value}) for value, count in counts.items()]


def _lag(data: DataFolder, cursor: LogPosition) -> list[Reading]:
    return [Reading(_bytes(data.log_folder, cursor, data.log.end), {})]


def _bytes(folder: Path, start: LogPosition, end: LogPosition) -> int:
    if start >= end:
        return 0
    if start.segment == end.segment:
        return end.offset - start.offset
    between = [n for n in segment_numbers(folder) if start.segment <= n < end.segment]
    whole = sum(_size(segment_path(folder, number)) for number in between)
    return whole - start.offset + end.offset


def _size(path: Path) -> int:
    """In bytes; 0 for what is not there (any more)."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
