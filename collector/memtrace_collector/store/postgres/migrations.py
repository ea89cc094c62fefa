"""How tables are made and brought up to date: forward only, and safe to repeat.

Any number of processes may start at once: an advisory lock lets one do it while the others
wait and then find it done. A script is one transaction with the number that says it ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors

from memtrace_collector.errors import WrongUseError

if TYPE_CHECKING:
    from typing_extensions import LiteralString

SESSION = (
    "SET search_path = memtrace; SET client_min_messages = warning; SET jit = off;"
    " SET random_page_cost = 1.1"
)
"""What every connection says first. Keys are looked up by the thousand: to the planner's usual
estimate of a disk that seeks, reading a whole table would seem as good."""
_LOCK = 0x6D656D7472616365
"""The advisory lock of all migrations: ``memtrace`` in ASCII."""
_BEGINNING = (
    "CREATE SCHEMA IF NOT EXISTS memtrace;"
    "CREATE TABLE IF NOT EXISTS memtrace.migration(part TEXT PRIMARY KEY, version INT NOT NULL)"
)
_ABSENT = (errors.UndefinedTable, errors.InvalidSchemaName)


@dataclass(frozen=True, slots=True)
class Part:
    """Tables that change together; ``scripts``: oldest first."""

    name: str
    scripts: Sequence[LiteralString]


def migrate(connection: psycopg.Connection[tuple[Any, ...]], part: Part, database: str) -> None:
    """Bring the tables of ``part`` to the newest version; ``connection`` is in autocommit mode.

    Raises:
        WrongUseError: a newer release made them.
    """
    if _version(connection, part) == len(part.scripts):
        return  # who may not create anything can still use what is there
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(_BEGINNING)
        version = _version(connection, part)
        if version > len(part.scripts):
            raise WrongUseError(
                f"{database} has version {version} of the tables for {part.name} and this release"
                f" knows {len(part.scripts)}: use the release that made them, or a newer one"
            )
        for script in part.scripts[version:]:
            connection.execute(script)
        connection.execute(
            "INSERT INTO migration VALUES (%s, %s) ON CONFLICT (part) DO UPDATE"
            " SET version = excluded.version",
            (part.name, len(part.scripts)),
        )


def _version(connection: psycopg.Connection[tuple[Any, ...]], part: Part) -> int:
    try:
        with connection.transaction():
            row = connection.execute(
                "SELECT version FROM migration WHERE part = %s", (part.name,)
            ).fetchone()
    except _ABSENT:
        return 0
    return int(row[0]) if row else 0
