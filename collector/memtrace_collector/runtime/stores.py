"""From what ``--store`` names to its stores: files of a folder (SQLite), or a database.

Stores in a database belong to nobody's folder. Positions in a log, which they hold as well, mean
the log of whoever opens them.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from memtrace_collector.errors import WrongUseError
from memtrace_collector.runtime.log_identity import log_identity
from memtrace_collector.store.base import CaseStore, FactStore
from memtrace_collector.store.sqlite_cases import SqliteCaseStore
from memtrace_collector.store.sqlite_facts import SqliteFactStore

LOG_FOLDER = "log"
FACTS_FILE = "facts.db"
CASES_FILE = "cases.db"
WRITER_CACHE_KIB = 64 * 1024
"""Of the facts; their values take a quarter of it. The process that projects and its owner stay
below 300 MB together."""
_FACTS = "memtrace_collector.store.postgres.facts"
_CASES = "memtrace_collector.store.postgres.cases"
_READERS = "memtrace_collector.store.postgres.report_readers"
_DRIVER = "psycopg"
HINT = 'a postgresql:// store needs its driver: pip install "memtrace-otel[postgres]"'


def open_facts(folder: Path | None, database: str = "") -> FactStore:
    """Facts to be written and read.

    Args:
        folder: of the files, or (with a ``database``) of the log whose facts are written; None:
            no log is here.
        database: a URL; empty: SQLite.

    Raises:
        WrongUseError: the driver is not installed.
        UnreachableError: nobody answers there.
    """
    if database or folder is None:
        facts: FactStore = _load(_FACTS).PostgresFactStore(database, log_id=_log_id(folder))
        return facts
    return SqliteFactStore(folder / FACTS_FILE, cache_kib=WRITER_CACHE_KIB)


def read_facts(folder: Path | None, database: str = "") -> FactStore:
    """Facts that another process writes; see :func:`open_facts`."""
    if database or folder is None:
        return open_facts(folder, database)
    return SqliteFactStore(folder / FACTS_FILE, writable=False)


def open_cases(folder: Path | None, database: str = "") -> CaseStore:
    """Cases; see :func:`open_facts`."""
    if database or folder is None:
        cases: CaseStore = _load(_CASES).PostgresCaseStore(database, log_id=_log_id(folder))
        return cases
    return SqliteCaseStore(folder / CASES_FILE)


def report_readers(database: str) -> tuple[str, ...]:
    """Roles of a database, besides its owner, that may read the views for dashboards.

    Raises:
        WrongUseError: the driver is not installed.
        UnreachableError: nobody answers there.
    """
    roles: tuple[str, ...] = _load(_READERS).report_readers(database)
    return roles


def _log_id(folder: Path | None) -> str:
    return "" if folder is None else log_identity(folder / LOG_FOLDER)


def _load(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != _DRIVER:
            raise
        raise WrongUseError(HINT) from None
