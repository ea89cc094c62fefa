"""The name of a log, which positions carry where several logs feed one store."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

from memtrace_collector.errors import DamagedError

FILE_NAME = "id"


def log_identity(folder: Path) -> str:
    """The id of the log in ``folder``: 32 hex digits, made on first use, the same for ever.

    Raises:
        DamagedError: the file holds something else.
        OSError: the folder cannot be written.
    """
    path = folder / FILE_NAME
    if not path.exists():
        _make(path)
    known = path.read_text().strip()
    if len(known) != 32 or not set(known) <= set("0123456789abcdef"):
        raise DamagedError(f"{path} does not hold the id of a log")
    return known


def _make(path: Path) -> None:
    """Whole or not at all; whoever comes second leaves what is there."""
    draft = path.with_suffix(f".{os.getpid()}")
    with draft.open("w") as file:
        file.write(uuid.uuid4().hex)
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()
