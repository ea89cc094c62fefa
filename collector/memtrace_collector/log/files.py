"""Every change that the log makes to its files.

What must survive a power cut passes here in a fixed order: bytes, then their sync, then the
folder's. A rename is durable once its folder is synced.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

_MAX_VECTORS = 512
_DRAFT = ".draft"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC


def create(path: Path) -> int:
    """Open a new file for appending; its name is durable after :func:`sync_folder`.

    Raises:
        FileExistsError: there is one.
    """
    return os.open(path, _NEW, 0o600)


def write_all(fd: int, parts: list[bytes]) -> None:
    """``writev`` everything, going on after short writes."""
    for first in range(0, len(parts), _MAX_VECTORS):
        vectors = [memoryview(part) for part in parts[first : first + _MAX_VECTORS]]
        while vectors:
            written = os.writev(fd, vectors)
            while vectors and written >= len(vectors[0]):
                written -= len(vectors.pop(0))
            if written:
                vectors[0] = vectors[0][written:]


def sync(fd: int) -> None:
    """What was written, and how long the file is, on disk."""
    os.fdatasync(fd)


def cut(fd: int, size: int) -> None:
    """Make a file shorter, and that durable."""
    os.ftruncate(fd, size)
    os.fsync(fd)


def replace(path: Path, parts: Iterable[bytes]) -> None:
    """Put other content in the place of a file: readers and power cuts see the old or the new.

    The time of last change stays, where there was a file.
    """
    draft = path.with_name(path.name + _DRAFT)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)
    fd = create(draft)
    try:
        for part in parts:
            write_all(fd, [part])
        os.fsync(fd)
    finally:
        os.close(fd)
    with contextlib.suppress(FileNotFoundError):
        times = path.stat()
        os.utime(draft, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(draft, path)
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Take a file away; durable after :func:`sync_folder`."""
    os.unlink(path)


def sync_folder(folder: Path) -> None:
    """The names of its files on disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
