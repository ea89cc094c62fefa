"""Errors of a data folder in words for the person who named it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from memtrace_collector.errors import DamagedError, StoreInUseError, WrongUseError
from memtrace_collector.log.errors import LogInUseError


@contextlib.contextmanager
def told(folder: Path) -> Iterator[None]:
    """What goes wrong with a folder, in words for the person who named it."""
    try:
        yield
    except LogInUseError as error:
        raise StoreInUseError(f"{error}; end it, or give another --store") from None
    except sqlite3.DatabaseError as error:
        raise DamagedError(
            f"a database in {folder} cannot be used: {error}; `memtrace-otel doctor` says which"
        ) from None
    except OSError as error:
        raise WrongUseError(f"cannot use {folder}: {error}") from None
