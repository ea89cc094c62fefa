"""Connections to one SQLite file: a single writer behind a lock, a reader for every thread.

SQLite before 3.51.3 can damage a file in WAL mode when two connections write or checkpoint it at
one moment (sqlite.org/wal.html, "The WAL-Reset Bug"). So each file has one writing connection in
one process, which alone checkpoints; readers open it so that they cannot.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from memtrace_collector.errors import DamagedError, NotFoundError, WrongUseError
from memtrace_collector.store import schema

_BUSY_TIMEOUT_S = 30.0
_READER_CACHE_KIB = 16 * 1024
_WAIT_FOR_WRITER_S = 10.0
_POLL_S = 0.02
_PAGE_BYTES = 4_096
"""SQLite's default."""


class Connections:
    """Opens the file, creating or migrating it.

    Args:
        path: the file.
        scripts: its schema, one script per version.
        synchronous: ``NORMAL`` where the file can be rebuilt (a power cut may lose the last
            transactions, never damage the file), ``FULL`` where it is the only copy.
        cache_kib: page cache of the writer.
        checkpoint_pages: how far the write-ahead log grows between checkpoints; pages that many
            transactions touch are then copied once for all of them.
        writable: False opens for reading what another process writes, and waits a moment for it
            to make or migrate the file.

    Raises:
        DamagedError: the file is no SQLite database, or a damaged one.
        WrongUseError: a newer release wrote it.
        NotFoundError: it is not there yet, or of another version (only for reading).
    """

    def __init__(
        self,
        path: Path,
        scripts: Sequence[str],
        *,
        synchronous: str,
        cache_kib: int,
        checkpoint_pages: int = 1_000,
        writable: bool = True,
    ) -> None:
        self.path = path
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        try:
            if writable:
                self._writer = self._open(cache_kib)
                self._writer.execute("PRAGMA journal_mode = WAL")
                self._writer.execute(f"PRAGMA synchronous = {synchronous}")
                self._writer.execute(f"PRAGMA wal_autocheckpoint = {checkpoint_pages}")
                self._writer.execute(f"PRAGMA journal_size_limit = {_limit(checkpoint_pages)}")
                self._writer.execute("PRAGMA secure_delete = 1")
                schema.migrate(self._writer, scripts, path.name)
            else:
                self._await_version(len(scripts))
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise DamagedError(f"{path} is not a readable SQLite database: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The writer, inside one immediate transaction: all of it happens or nothing.

        Raises:
            WrongUseError: the file was opened for reading only.
        """
        with self._writing:
            writer = self._only_writer()
            writer.execute("BEGIN IMMEDIATE")
            try:
                yield writer
            except BaseException:
                writer.execute("ROLLBACK")
                raise
            writer.execute("COMMIT")

    def empty_wal(self) -> None:
        """Leave nothing of deleted rows in the write-ahead log; in the file itself
        ``secure_delete`` has overwritten them.

        Raises:
            sqlite3.OperationalError: a reader keeps old pages in use.
        """
        with self._writing:
            writer = self._only_writer()
            busy, *_ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError(f"{self.path.name} is in use: erased rows remain")

    def scrub(self) -> None:
        """Leave nothing of deleted rows in the file or in its write-ahead log.

        Raises:
            sqlite3.OperationalError: a reader or another process keeps old pages in use.
        """
        with self._writing:
            self._only_writer().execute("VACUUM")
        self.empty_wal()

    def query(self, statement: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run a read on this thread's own connection."""
        return self.reader().execute(statement, parameters)

    def reader(self) -> sqlite3.Connection:
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = _Reader(self._open(_READER_CACHE_KIB, "ro"))
            with self._opening:
                self._readers.add(reader)
            self._local.reader = reader
        return reader.connection

    def close(self) -> None:
        """Close every connection; idempotent."""
        with self._writing, self._opening:
            if self._closed:
                return
            self._closed = True
            for reader in list(self._readers):
                reader.connection.close()
            if self._writer is not None:
                self._writer.close()

    def _only_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            raise WrongUseError(f"{self.path.name} is open for reading only")
        return self._writer

    def _await_version(self, version: int) -> None:
        deadline = time.monotonic() + _WAIT_FOR_WRITER_S
        while (found := self._version()) != version:
            if found > version:
                raise WrongUseError(schema.too_new(self.path.name, found, version))
            if time.monotonic() > deadline:
                state = "not there yet" if found < 0 else f"still of schema version {found}"
                raise NotFoundError(f"{self.path.name} is {state}: nobody has projected the log")
            time.sleep(_POLL_S)

    def _version(self) -> int:
        """-1: there is no such file. Only its writer may make or migrate it."""
        if not self.path.exists():
            return -1
        return int(self.query("PRAGMA user_version").fetchone()[0])

    def _open(self, cache_kib: int, mode: str = "rwc") -> sqlite3.Connection:
        # check_same_thread: a thread's reader is closed by whoever closes the store
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        return connection


def _limit(checkpoint_pages: int) -> int:
    """Bytes: a write-ahead log that a reader kept from being emptied is cut back to so many."""
    return 2 * checkpoint_pages * _PAGE_BYTES


class _Reader:
    """A thread's connection; it goes when its thread does, for a server's threads come and go."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


def json_list(items: Iterable[object]) -> str:
    """A list as one parameter, for ``json_each(?)``: any length, and never part of the SQL."""
    return json.dumps(list(items))


def int_list(numbers: Iterable[int]) -> str:
    """:func:`json_list` of integers, made in a tenth of the time."""
    return msgspec.json.encode(list(numbers)).decode()


def take_numbers(connection: sqlite3.Connection, name: str, count: int) -> int:
    """The first of ``count`` fresh numbers: rows of one batch stay together on disk."""
    row = connection.execute(
        "INSERT INTO counter VALUES (?1, ?2)"
        " ON CONFLICT DO UPDATE SET value = value + ?2 RETURNING value",
        (name, count),
    ).fetchone()
    return int(row[0]) - count + 1
