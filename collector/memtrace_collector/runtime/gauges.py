"""What is read when somebody scrapes: lag, depths, ages, and what the stores say now.

What a process knows of itself, each tells. What stores hold that processes may share is told by
those that watch (`up`, `serve`): see ``teller`` in :mod:`memtrace_collector.telemetry.metric`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from memtrace_collector.log.position import LogPosition
from memtrace_collector.log.reader import received_ns, segment_numbers, segment_path
from memtrace_collector.runtime.data_folder import DataFolder
from memtrace_collector.runtime.stores import CASES_FILE, FACTS_FILE
from memtrace_collector.runtime.tenants import Tenants
from memtrace_collector.store.sqlite_facts import files_of
from memtrace_collector.telemetry.telemetry import Reading, Telemetry

STORE_SECONDS = 5.0
REST_FACTOR = 20.0
_NS = 1_000_000_000
Key = TypeVar("Key", bound=Hashable)


def install_log(telemetry: Telemetry, data: DataFolder, forward_cursor: str | None) -> None:
    """Of a process that keeps a log. ``forward_cursor``: of the destination, when it has one."""
    folder = data.log_folder.parent
    telemetry.gauge("memtrace.store.wal", lambda: wal_bytes(folder))
    telemetry.gauge("memtrace.projection.lag", lambda: _lag(data, data.facts.cursor()))
    telemetry.gauge("memtrace.projection.delay", lambda: _delay(data, data.facts.cursor()))
    if forward_cursor is not None:
        telemetry.gauge(
            "memtrace.forward.lag", lambda: _lag(data, data.cases.cursor(forward_cursor))
        )


def install_work(telemetry: Telemetry, tenants: Tenants) -> None:
    """Of a process that judges flagged answers."""
    telemetry.gauge("memtrace.references.unresolved", lambda: [Reading(tenants.unseen(), {})])


def install_fleet(telemetry: Telemetry, tenants: Tenants) -> None:
    """Of the stores; what tenants have is told of all of them together."""
    telemetry.gauge("memtrace.invariants", lambda: _by("kind", tenants.findings()))
    telemetry.gauge(
        "memtrace.outbox.depth",
        lambda: _by("state", _sum(each.cases.outbox_counts() for each in tenants.data())),
    )
    telemetry.gauge(
        "memtrace.cases",
        lambda: _by("state", _sum(each.cases.queue_counts() for each in tenants.data())),
    )
    telemetry.gauge("memtrace.cases.age", _Cached(_cases_age, tenants))
    telemetry.gauge("memtrace.outbox.age", _Cached(_outbox_age, tenants))
    telemetry.gauge("memtrace.answers.flagged", _Cached(_flags, tenants))
    telemetry.gauge("memtrace.verdicts", _Cached(_verdicts, tenants))
    telemetry.gauge("memtrace.judged", _Cached(_judged, tenants))


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
    return _by("source", _sum(each.facts.flag_counts() for each in tenants.data()))


def _cases_age(tenants: Tenants) -> list[Reading]:
    return _age(each.cases.longest().case_ns for each in tenants.data())


def _outbox_age(tenants: Tenants) -> list[Reading]:
    return _age(each.cases.longest().delivery_ns for each in tenants.data())


def _verdicts(tenants: Tenants) -> list[Reading]:
    counts = _sum(each.cases.verdict_counts() for each in tenants.data())
    return [
        Reading(count, {"stage": stage, "type": error_type, "method": method})
        for (stage, error_type, method), count in counts.items()
    ]


def _judged(tenants: Tenants) -> list[Reading]:
    counts = _sum(each.cases.judgement_counts() for each in tenants.data())
    return [
        Reading(count, {"stage": stage, "agreement": agreement})
        for (stage, agreement), count in counts.items()
    ]


def _sum(counted: Iterable[Mapping[Key, int]]) -> Counter[Key]:
    counts: Counter[Key] = Counter()
    for each in counted:
        counts.update(each)
    return counts


def _by(attribute: str, counts: Counter[str]) -> list[Reading]:
    return [Reading(count, {attribute: value}) for value, count in counts.items()]


def _age(moments: Iterable[int | None]) -> list[Reading]:
    """Seconds since the earliest; 0 when there is none."""
    now = time.time_ns()
    earliest = min((each for each in moments if each is not None), default=now)
    return [Reading(max(0, now - earliest) / _NS, {})]


def _lag(data: DataFolder, cursor: LogPosition) -> list[Reading]:
    return [Reading(_bytes(data.log_folder, cursor, data.log.end), {})]


def _delay(data: DataFolder, cursor: LogPosition) -> list[Reading]:
    return _age([received_ns(data.log_folder, cursor, data.log.end)])


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
