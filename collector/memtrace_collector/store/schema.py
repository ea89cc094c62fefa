"""How an older SQLite file is brought up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memtrace_collector.errors import WrongUseError


def migrate(connection: sqlite3.Connection, scripts: Sequence[str], name: str) -> None:
    """Bring the file behind ``connection`` to the newest version.

    Raises:
        WrongUseError: a newer release wrote the file.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(scripts):
            raise WrongUseError(too_new(name, version, len(scripts)))
        for script in scripts[version:]:
            for statement in script.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def too_new(name: str, version: int, known: int) -> str:
    """Why a file of another schema version is not opened."""
    return (
        f"{name} has schema version {version} and this release knows {known}: "
        "use the release that wrote it, or a newer one"
    )
