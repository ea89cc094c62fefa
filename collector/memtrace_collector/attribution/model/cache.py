"""Answers of a model, kept: the same question costs once. Bounded, in the data folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

MAX_ENTRIES = 50_000
_PRUNED_AT_ONCE = 0.1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers "
    "(key TEXT PRIMARY KEY, answer TEXT NOT NULL, used_ns INTEGER NOT NULL) WITHOUT ROWID"
)


def cache_key(model: str, parameters: str, prompt: str) -> str:
    """By model, its parameters, and the prompt before its random marks are drawn."""
    return hashlib.sha256(
        "\0".join((model, parameters, prompt)).encode(errors="replace")
    ).hexdigest()


class Cache:
    """Texts by key; the least recently used go first. Safe for threads.

    Args:
        file: where they are kept; None keeps them in memory. A file that is no cache is
            replaced: nothing in it is needed.
        max_entries: how many.
    """

    def __init__(
        self,
        file: Path | None,
        *,
        max_entries: int = MAX_ENTRIES,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._max = max_entries
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._connection = _opened(file)

    def get(self, key: str) -> dict[str, object] | None:
        """What was kept under a key; None also where the file cannot be read."""
        with self._lock, _spared("read"):
            row = self._connection.execute(
                "SELECT answer FROM answers WHERE key = ?", (key,)
            ).fetchone()
            found = json.loads(row[0]) if row else None
            if isinstance(found, dict):
                self._touch(key)
                return found
        return None

    def put(self, key: str, answer: dict[str, object]) -> None:
        """Keep an answer; drops the least recently used beyond the bound. Where the file cannot
        be written, nothing is kept."""
        with self._lock, _spared("write"), self._connection as connection:
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)",
                (key, json.dumps(answer), self._clock_ns()),
            )
            (count,) = connection.execute("SELECT count(*) FROM answers").fetchone()
            if count > self._max:
                gone = count - self._max + int(self._max * _PRUNED_AT_ONCE)
                connection.execute(
                    "DELETE FROM answers WHERE key IN "
                    "(SELECT key FROM answers ORDER BY used_ns LIMIT ?)",
                    (gone,),
                )

    def _touch(self, key: str) -> None:
        with self._connection as connection:
            connection.execute(
                "UPDATE answers SET used_ns = ? WHERE key = ?", (self._clock_ns(), key)
            )

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def _spared(what: str) -> Iterator[None]:
    """A cache that fails costs a question, never a verdict."""
    try:
        yield
    except (sqlite3.Error, ValueError) as error:
        logger.warning("could not %s the cache of answers: %s", what, error)


def _opened(file: Path | None) -> sqlite3.Connection:
    try:
        return _connected(file)
    except sqlite3.OperationalError:
        raise  # locked or not writable: nothing is wrong with what is in it
    except sqlite3.DatabaseError as error:
        if file is None:
            raise
        logger.warning("%s is no cache of answers (%s); begun anew", file, error)
        for suffix in ("", "-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)
        return _connected(file)


def _connected(file: Path | None) -> sqlite3.Connection:
    with contextlib.ExitStack() as opened:
        connection = sqlite3.connect(file or ":memory:", check_same_thread=False, timeout=10)
        opened.callback(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(_SCHEMA)
        connection.commit()
        opened.pop_all()
        return connection
