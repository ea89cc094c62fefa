"""Erasing a graph, or a tenant, from everything in a data folder, with proof.

The order is noted, then stands in the log; the projection carries it out in the facts, this
process in the cases; then the log's earlier segments are rewritten without what is erased, the
order itself loses the graph's name, and every file is searched. Each step may be done again, so
one that was broken off is finished at the next start or by the next call.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from memtrace_collector.errors import DamagedError, UnreachableError
from memtrace_collector.log import files
from memtrace_collector.log.control import Erase, carried_out, erase_record, read_erase
from memtrace_collector.log.errors import LogError
from memtrace_collector.log.format import LogRecord
from memtrace_collector.log.position import START, LogPosition
from memtrace_collector.log.reader import Damage, Entry, read, segment_numbers
from memtrace_collector.log.rewriting import Change, Wipe, rewrite_segment
from memtrace_collector.log.segments import SegmentLog
from memtrace_collector.processor.erasing import Doomed, find, only_of
from memtrace_collector.processor.quarantine import FILE_NAME as QUARANTINE_FILE
from memtrace_collector.processor.reading import RecordReader
from memtrace_collector.runtime.durable_facts import sync_facts
from memtrace_collector.runtime.erase_proof import (
    MAX_NEEDLES,
    Found,
    Searched,
    is_held,
    known_operations,
    needles,
    operations_before,
    search,
)
from memtrace_collector.runtime.judges import CACHE_FILE
from memtrace_collector.store.base import FactStore
from memtrace_collector.telemetry.metrics import NULL_METRICS, Metrics
from memtrace_collector.telemetry.passes import Passes

Json = dict[str, Any]
Tell: TypeAlias = Callable[[Collection[str]], None]
Done = TypeVar("Done")

NOTE_FILE = "erasing.json"
FORWARDED = (
    "what was sent on to another place before, as spans or verdicts, is there and has to be "
    "erased there; copies of this folder (backups, file system snapshots) are untouched"
)
COMMIT_SECONDS = 30.0
LOOK_SECONDS = 60.0
_INDEX_SECONDS = 5.0
_BUSY_SECONDS = 60.0
_BUSY_PAUSE_SECONDS = 0.2


class Folder(Searched, Protocol):
    """The part of :class:`~memtrace_collector.runtime.data_folder.DataFolder` needed here."""

    @property
    def log_folder(self) -> Path: ...
    @property
    def log(self) -> SegmentLog: ...
    def for_tenant(self, tenant: str) -> Folder: ...
    def project(self) -> None: ...


class _Work(NamedTuple):
    """An order under way, as it is noted: whatever of this is known need not be found again."""

    order: Erase
    at: LogPosition | None = None
    """Where the order stands in the log."""
    targets: frozenset[str] | None = None
    """See :class:`~memtrace_collector.processor.erasing.Doomed`; None: not known yet."""
    wanted: tuple[str, ...] = ()
    """What is searched for afterwards."""
    operations: int = 0
    """How many there were."""
    given: frozenset[str] = frozenset()
    """Targets that came with the order."""


class Eraser:
    """One erasure at a time over one folder, in the process that owns it.

    Args:
        data: the folder, of whichever tenant.
        reader: as the log is read by the projection.
    """

    def __init__(self, data: Folder, reader: RecordReader, metrics: Metrics = NULL_METRICS) -> None:
        self._data = data
        self._metrics = metrics
        self._folder = data.log_folder.parent
        self._note = data.log_folder / NOTE_FILE
        self._reader = reader
        self._one = threading.Lock()

    def erase(self, tenant: str, graph_id: str) -> Json:
        """Erase a graph of the tenant or, with an empty name, all of the tenant's.

        Returns what went and what was found afterwards: ``left`` is empty when nothing is left.

        Raises:
            UnreachableError: the log or the projection does not go on; it is finished later.
        """
        return self.carry_out(Erase(tenant, graph_id, uuid.uuid4().hex))

    def carry_out(
        self, order: Erase, targets: Collection[str] = (), tell: Tell = lambda _: None
    ) -> Json:
        """Carry out an order that was given elsewhere, or go on with it; see :meth:`erase`.

        Args:
            targets: see :class:`~memtrace_collector.processor.erasing.Doomed`; those that this
                log tells of are added.
            tell: called with all of them before anything is erased from the log.
        """
        with self._one:
            work = self._read_note()
            if work is None or work.order.order_id != order.order_id:
                self._finish()
                work = _Work(order, given=frozenset(targets))
                self._write_note(work)
            return self._carry_out(work, tell)

    def run(self, stop: threading.Event) -> None:
        """Finish, until ``stop``, what was broken off."""
        passes = Passes(
            "an erasure could not be finished; it is tried again",
            "memtrace.erase.failures",
            self._metrics,
            pause_seconds=LOOK_SECONDS,
        )
        passes.run(self._pass, stop)

    def _pass(self) -> float:
        self.resume()
        return LOOK_SECONDS

    def resume(self) -> Json | None:
        """Finish what was broken off; None when nothing was.

        Raises:
            UnreachableError: as :meth:`erase`.
        """
        with self._one:
            return self._finish()

    def _finish(self) -> Json | None:
        work = self._read_note()
        return self._carry_out(work) if work is not None else None

    def _carry_out(self, work: _Work, tell: Tell = lambda _: None) -> Json:
        order = work.order
        data = self._data.for_tenant(order.tenant)
        work, at = self._ordered(work, data)
        work, doomed = self._looked_up(work, at, data)
        tell(doomed.targets)
        self._data.project()
        sync_facts(self._folder)
        cases = _retried(lambda: data.cases.erase(order.graph_id or None))
        _retried(lambda: _empty_cache(self._folder / CACHE_FILE))
        _retried(lambda: _forget_words(data.facts))
        wanted = [text.encode() for text in work.wanted]
        records = self._rewrite_log(doomed, wanted)
        self._clean_notes(wanted)
        self._close_order(order, at)
        found = self._search(data, doomed, wanted)
        files.remove(self._note)
        files.sync_folder(data.log_folder)
        return {
            "tenant": order.tenant,
            "graph_id": order.graph_id,
            "erased": {"operations": work.operations, "records": records, **cases._asdict()},
            "searched": {"texts": len(wanted), "files": found.files, "bytes": found.bytes},
            "left": dict(found.left),
            "elsewhere": dict(found.elsewhere),
            "note": FORWARDED,
        }

    def _ordered(self, work: _Work, data: Folder) -> tuple[_Work, LogPosition]:
        """The order in the log; noted before, so that it stands there once at least."""
        if work.at is not None:
            return work, work.at
        operations = known_operations(data, work.order.graph_id)
        try:
            appended = data.log.append(erase_record(work.order, time.time_ns()))
            at = appended.result(COMMIT_SECONDS)
        except (LogError, futures.TimeoutError) as error:
            raise UnreachableError(f"the log does not take the order: {error}") from None
        work = work._replace(at=at, operations=operations)
        self._write_note(work)
        return work, at

    def _looked_up(self, work: _Work, at: LogPosition, data: Folder) -> tuple[_Work, Doomed]:
        """Which traces go whole and what to search for: noted while the log still says so."""
        order = work.order
        if work.targets is None:
            named = find(data.log_folder, self._reader, Doomed(order, at), MAX_NEEDLES)
            only = only_of(order.graph_id, named.targets, data.facts) if order.graph_id else ()
            wanted = needles(order.graph_id, named.texts, self._folder)
            work = work._replace(targets=frozenset(only) | work.given, wanted=tuple(wanted))
            self._write_note(work)
        return work, Doomed(order, at, work.targets or frozenset())

    def _rewrite_log(self, doomed: Doomed, wanted: list[bytes]) -> int:
        def wipe(damaged: bytes) -> bool:
            return any(needle in damaged for needle in wanted)

        numbers = segment_numbers(self._data.log_folder)
        return sum(
            self._rewritten(number, doomed.change, wipe)
            for number in numbers
            if number <= doomed.until.segment
        )

    def _rewritten(self, number: int, change: Change, wipe: Wipe) -> int:
        try:
            return rewrite_segment(self._data.log_folder, number, change, wipe)
        except FileNotFoundError:
            return 0  # retention was faster

    def _close_order(self, order: Erase, at: LogPosition) -> None:
        """The order itself names the graph no more."""

        def close(entry: Entry) -> LogRecord | None:
            is_this = entry.position == at and read_erase(entry.record) == order
            return carried_out(entry.record, order) if is_this else None

        self._rewritten(at.segment, close, lambda _: False)

    def _clean_notes(self, wanted: list[bytes]) -> None:
        """Reasons in the quarantine's notes may quote what could not be read."""
        path = self._data.log_folder / QUARANTINE_FILE
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        kept = [line for line in lines if not any(needle in line for needle in wanted)]
        if len(kept) < len(lines):
            files.replace(path, kept)

    def _search(self, data: Folder, doomed: Doomed, wanted: list[bytes]) -> Found:
        graph_id = doomed.order.graph_id
        found = search(
            self._folder,
            data.log_folder,
            wanted,
            is_others=lambda needle: is_held(data, needle.decode()),
            leave_out=(self._note,),
        )
        records = sum(
            doomed.change(entry) is not None for entry in read(data.log_folder, START, _ignore)
        )
        found.left.update(log=records, facts=operations_before(data, graph_id, doomed.until))
        found.left = +found.left
        return found

    def _write_note(self, work: _Work) -> None:
        note = {
            "order": (work.order.tenant, work.order.graph_id, work.order.order_id),
            "at": work.at,
            "targets": None if work.targets is None else sorted(work.targets),
            "wanted": work.wanted,
            "operations": work.operations,
            "given": sorted(work.given),
        }
        files.replace(self._note, [json.dumps(note).encode()])

    def _read_note(self) -> _Work | None:
        try:
            return _work(json.loads(self._note.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, LookupError, TypeError) as error:
            raise DamagedError(
                f"{self._note} does not say which erasure was under way ({error}): remove it, and "
                "give the command again"
            ) from None


def _work(note: Mapping[str, Any]) -> _Work:
    """What the note in a folder says of an erasure that is under way."""
    targets = note["targets"]
    return _Work(
        Erase(*note["order"]),
        LogPosition(*note["at"]) if note["at"] else None,
        None if targets is None else frozenset(targets),
        tuple(note["wanted"]),
        note["operations"],
        frozenset(note.get("given", ())),
    )


@runtime_checkable
class _Indexing(Protocol):
    """A fact store whose full-text index this process keeps."""

    def index_text(self, seconds: float) -> bool: ...


def _forget_words(facts: FactStore) -> None:
    """The index follows the values: what is gone there goes."""
    while isinstance(facts, _Indexing) and facts.index_text(_INDEX_SECONDS):
        pass


def _ignore(damage: Damage) -> None:
    """Damaged bytes were looked through by the search."""


def _retried(step: Callable[[], Done]) -> Done:
    """A database that somebody reads right now cannot be scrubbed: a moment later it can."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(sqlite3.OperationalError):
            return step()
        time.sleep(_BUSY_PAUSE_SECONDS)
    raise UnreachableError("a database of the folder stays in use; it is finished later")


def _empty_cache(path: Path) -> None:
    """Answers of a model may quote anything, and none of them is needed."""
    if not path.exists():
        return
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM answers")
        connection.execute("VACUUM")
