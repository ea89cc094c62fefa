"""Connections to one PostgreSQL database: few, shared by threads, opened anew when they break.

A statement or transaction that lost its connection, or that the server gave up for the sake of
another, is tried again: everything that runs here may run twice.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from memtrace_collector.errors import ConfigError, UnreachableError
from memtrace_collector.store.postgres import migrations
from memtrace_collector.store.postgres.migrations import Part

if TYPE_CHECKING:
    from typing_extensions import LiteralString

Connection = psycopg.Connection[tuple[Any, ...]]
Parameters = Sequence[object] | Mapping[str, object]
Result = TypeVar("Result")

MOST_CONNECTIONS = 8
PATIENCE_SECONDS = 10.0
"""How long a call waits for a server that went away; a restart takes a few seconds."""
_CONNECT_SECONDS = 5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_TRY_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)


class Database:
    """Opens the database and brings its tables up to date; :meth:`close` when done.

    A connection keeps settings and temporary tables: a pooler in between has to give each its
    own session (PgBouncer: ``pool_mode = session``).

    Args:
        dsn: a ``postgresql://`` URL, or ``key=value`` pairs, as libpq takes them.
        parts: the tables that are used, first what others build on.
        most: connections at a time; a thread that finds none free waits.
        patience_seconds: see :data:`PATIENCE_SECONDS`.

    Raises:
        ConfigError: the URL cannot be read.
        UnreachableError: nobody answers there, or refuses us.
        WrongUseError: a newer release made the tables.
    """

    def __init__(
        self,
        dsn: str,
        *parts: Part,
        most: int = MOST_CONNECTIONS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._dsn = dsn
        self.name = _name(dsn)
        self._patience = patience_seconds
        self._free = threading.BoundedSemaphore(most)
        self._guard = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False
        with contextlib.ExitStack() as opened:
            opened.callback(self.close)
            with self.connection() as connection:
                for part in parts:
                    migrations.migrate(connection, part, self.name)
            opened.pop_all()

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in autocommit mode, for this thread alone."""
        with self._free:
            connection = self._checked_out()
            try:
                yield connection
            finally:
                self._give_back(connection)

    def transaction(self, work: Callable[[Connection], Result]) -> Result:
        """Run ``work`` in one transaction, again from the start where it has to be."""

        def once(connection: Connection) -> Result:
            with connection.transaction():
                return work(connection)

        return self.run(once)

    def snapshot(self, work: Callable[[Connection], Result]) -> Result:
        """Run reads that belong together: all see the same state."""

        def once(connection: Connection) -> Result:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                return work(connection)

        return self.run(once)

    def query(self, statement: LiteralString, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement, which is a transaction of its own."""
        return self.run(
            lambda connection: connection.execute(statement, parameters, binary=True).fetchall()
        )

    def stream(
        self, statement: LiteralString, parameters: Parameters, part: int
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of one statement, of which ``part`` are held at a time.

        Its connection is not counted: who reads on may ask for others meanwhile.

        Raises:
            UnreachableError: the connection broke; what came is not all.
        """
        connection = self._checked_out()
        try:
            with connection.transaction(), connection.cursor("stream", binary=True) as cursor:
                cursor.itersize = part
                yield from cursor.execute(statement, parameters)
        except psycopg.OperationalError as error:
            raise self._unreachable(error) from error
        finally:
            self._give_back(connection)

    def change(self, statement: LiteralString, parameters: Parameters = ()) -> int:
        """The number of rows that one statement changed."""
        return self.run(lambda connection: connection.execute(statement, parameters).rowcount)

    def run(self, work: Callable[[Connection], Result]) -> Result:
        """Run ``work`` on a connection, again as :meth:`transaction` does.

        Raises:
            UnreachableError: the server went away and did not come back in time, or can take
                nothing (a full disk, no connection left).
        """
        deadline = time.monotonic() + self._patience
        pause = _FIRST_PAUSE
        while True:
            try:
                with self.connection() as connection:
                    return work(connection)
            except (psycopg.OperationalError, UnreachableError) as error:
                if not self._may_try_again(error) or time.monotonic() >= deadline:
                    raise self._unreachable(error) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def close(self) -> None:
        """Close every connection that is not in use now; the others close when given back."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _may_try_again(self, error: Exception) -> bool:
        if isinstance(error, _TRY_AGAIN):
            return True
        is_lost = isinstance(error, UnreachableError) or _is_connection_lost(error)
        if is_lost:
            self._drop_idle()  # a server that restarted took them all with it
        return is_lost and not self._closed

    def _checked_out(self) -> Connection:
        with self._guard:
            if self._closed:
                raise UnreachableError(f"the store in {self.name} is closed")
            if self._idle:
                return self._idle.pop()
        return self._opened()

    def _opened(self) -> Connection:
        with contextlib.ExitStack() as opened:
            try:
                connection = psycopg.connect(
                    self._dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS
                )
                opened.callback(connection.close)
                connection.execute(migrations.SESSION)
            except psycopg.OperationalError as error:
                raise self._unreachable(error) from error
            opened.pop_all()
        return connection

    def _give_back(self, connection: Connection) -> None:
        is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._guard:
            if is_idle and not connection.closed and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _unreachable(self, error: Exception) -> UnreachableError:
        if isinstance(error, UnreachableError):
            return error
        said = str(error).strip().splitlines() or [type(error).__name__]
        return UnreachableError(f"PostgreSQL at {self.name} does not serve us: {said[0]}")


def _is_connection_lost(error: Exception) -> bool:
    """No SQLSTATE: libpq itself says so. Class 08: connection; 57P: the server goes or starts."""
    state = getattr(error, "sqlstate", None)
    return state is None or state.startswith(("08", "57P"))


def _name(dsn: str) -> str:
    """Where a database is, without anything secret."""
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise ConfigError("not a postgresql:// URL that libpq can read") from error
    return f"{parts.get('host') or 'localhost'}/{parts.get('dbname') or ''}"
