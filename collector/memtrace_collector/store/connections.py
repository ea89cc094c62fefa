"""Connections to one SQLite file: a single writer behind a lock, a reader for every thread."""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memtrace_collector.errors import DamagedError
from memtrace_collector.store import schema

_BUSY_TIMEOUT_S = 30.0
_READER_CACHE_KIB = 16 * 1024


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

    Raises:
        DamagedError: the file is no SQLite database, or a damaged one.
        WrongUseError: a newer release wrote it.
    """

    def __init__(
        self,
        path: Path,
        scripts: Sequence[str],
        *,
        synchronous: str,
        cache_kib: int,
        checkpoint_pages: int = 1_000,
    ) -> None:
        self.path = path
        self._writing = threading.Lock()
        self._opening = threading.Lock()
        self._local = threading.local()
        self._readers: weakref.WeakSet[_Reader] = weakref.WeakSet()
        self._closed = False
        try:
            self._writer = self._open(cache_kib)
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute(f"PRAGMA synchronous = {synchronous}")
            self._writer.execute(f"PRAGMA wal_autocheckpoint = {checkpoint_pages}")
            schema.migrate(self._writer, scripts, path.name)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise DamagedError(f"{path} is not a readable SQLite database: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The writer, inside one immediate transaction: all of it happens or nothing."""
        with self._writing:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    def scrub(self) -> None:
        """Leave nothing of deleted rows in the file or in its write-ahead log.

        Raises:
            sqlite3.OperationalError: a reader or another process keeps old pages in use.
        """
        with self._writing:
            self._writer.execute("VACUUM")
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError(f"{self.path.name} is in use: erased rows remain")

    def query(self, statement: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run a read on this thread's own connection."""
        return self.reader().execute(statement, parameters)

    def reader(self) -> sqlite3.Connection:
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = _Reader(self._open(_READER_CACHE_KIB))
            reader.connection.execute("PRAGMA query_only = 1")
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
            self._writer.close()

    def _open(self, cache_kib: int) -> sqlite3.Connection:
        # check_same_thread: a thread's reader is closed by whoever closes the store
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        return connection


class _Reader:
    """A thread's connection; it goes when its thread does, for a server's threads come and go."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


def json_list(items: Iterable[object]) -> str:
    """A list as one parameter, for ``json_each(?)``: any length, and never part of the SQL."""
    return json.dumps(list(items))


def take_numbers(connection: sqlite3.Connection, name: str, count: int) -> int:
    """The first of ``count`` fresh numbers: rows of one batch stay together on disk."""
    row = connection.execute(
        "INSERT INTO counter VALUES (?1, ?2)"
        " ON CONFLICT DO UPDATE SET value = value + ?2 RETURNING value",
        (name, count),
    ).fetchone()
    return int(row[0]) - count + 1
