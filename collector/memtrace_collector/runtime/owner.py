"""Who owns a data folder: a lock that dies with its process, and a note that says who it is.

The note holds what commands on this machine need to ask that process, a key among it, and only
the owner of the files can read it.

``owner.lock`` is held (``flock``) for as long as a process uses the folder; ``owner.json``
names that process and, for ``up``, the address of its API. A note without a held lock is left
over from a process that was killed and means nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from memtrace_collector.errors import StoreInUseError, WrongUseError

LOCK_FILE = "owner.lock"
NOTE_FILE = "owner.json"
WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that uses a folder.

    ``api``: base URL of its API, empty when it has none. ``key``: see
    :mod:`memtrace_collector.access.owner_token`. ``certificate``: that of its API, PEM.
    """

    pid: int
    command: str
    api: str = ""
    key: str = field(default="", repr=False)
    certificate: str = ""


class Ownership:
    """A folder that is ours until :meth:`release`."""

    def __init__(self, folder: Path, lock: IO[bytes]) -> None:
        self.folder = folder
        self._lock = lock

    def announce(self, owner: Owner) -> None:
        """Say who owns the folder; readers see the old note or the new one, never half."""
        draft = self.folder / f"{NOTE_FILE}.new"
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as note:
            note.write(json.dumps(asdict(owner)) + "\n")
        draft.replace(self.folder / NOTE_FILE)

    def release(self) -> None:
        """Give the folder up. Idempotent."""
        if not self._lock.closed:
            (self.folder / NOTE_FILE).unlink(missing_ok=True)
            self._lock.close()


def try_own(folder: Path) -> Ownership | None:
    """Take the folder, made when missing; None while another process holds it.

    Raises:
        WrongUseError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK_FILE).open("ab")
    except OSError as error:
        raise WrongUseError(f"cannot use {folder} as a store: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return Ownership(folder, lock)


def read_owner(folder: Path) -> Owner | None:
    """The note in the folder, whether or not its process still lives."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        note = json.loads((folder / NOTE_FILE).read_text(encoding="utf-8"))
        texts = (str(note.get(name, "")) for name in ("api", "key", "certificate"))
        return Owner(int(note["pid"]), str(note["command"]), *texts)
    return None


def own_or_ask(folder: Path, command: str, wait_seconds: float = WAIT_SECONDS) -> Ownership | Owner:
    """The folder itself, or the process with an API that owns it.

    Waits while another short command holds the folder.

    Raises:
        StoreInUseError: it is held for longer than ``wait_seconds`` and offers no API.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        ownership = try_own(folder)
        if ownership:
            ownership.announce(Owner(os.getpid(), command))
            return ownership
        owner = read_owner(folder)
        if owner and owner.api:
            return owner
        if time.monotonic() >= deadline:
            raise StoreInUseError(_in_use(folder, owner))
        time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def owned(folder: Path, command: str) -> Iterator[Ownership]:
    """The folder for a command that must have it for itself.

    Raises:
        StoreInUseError: another process owns it.
    """
    ownership = try_own(folder)
    if ownership is None:
        raise StoreInUseError(_in_use(folder, read_owner(folder)))
    try:
        ownership.announce(Owner(os.getpid(), command))
        yield ownership
    finally:
        ownership.release()


def _in_use(folder: Path, owner: Owner | None) -> str:
    who = f"memtrace-otel {owner.command} (process {owner.pid})" if owner else "another process"
    return f"{folder} is in use by {who}; end it, or give another --store"
