"""Making sure that facts are on disk, from a process that does not write them."""

from __future__ import annotations

import os
from pathlib import Path


def sync_facts(folder: Path) -> None:
    """What the databases of a folder say now survives a power cut.

    SQLite with ``synchronous=NORMAL`` syncs its write-ahead log only before it copies it into
    the file (sqlite.org/wal.html, "Performance Considerations"), so a power cut may take back
    what a reader has seen. Nothing that a projection was made from may go before this.
    """
    for path in folder.glob("*.db-wal"):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # it was copied, and synced, a moment ago
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
