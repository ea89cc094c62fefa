"""A disk that forgets what was not synced: what a folder would hold after a power cut.

Everything that the log does to its files passes through ``os``; while :class:`VolatileDisk` is
entered, each change in the folder is recorded as well, and becomes durable only with the
``fsync`` or ``fdatasync`` of that file (for names: of the folder). :meth:`VolatileDisk.after`
puts together what may be left: everything durable, and of the rest any subset, writes torn at
512 bytes, names and lengths apart from contents.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from unittest import mock

SECTOR_BYTES = 512


@dataclass
class _File:
    """Contents: what is durable, and what happened since: (offset, bytes), or a new length."""

    durable: bytes = b""
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)

    def sync(self) -> None:
        self.durable = self._with(self.pending)
        self.pending = []

    def left(self, chance: random.Random) -> bytes:
        kept: list[tuple[int, bytes] | int] = []
        likelihood = chance.choice((0.0, 0.5, 0.9, 1.0))
        for change in self.pending:
            if isinstance(change, int):
                kept += [change] if chance.random() < likelihood else []
                continue
            kept += [part for part in _sectors(*change) if chance.random() < likelihood]
            if chance.random() < 0.2:  # the length got there, the bytes did not
                kept.append((change[0] + len(change[1]), b""))
        return self._with(kept)

    def _with(self, changes: Sequence[tuple[int, bytes] | int]) -> bytes:
        data = bytearray(self.durable)
        for change in changes:
            if isinstance(change, int):
                del data[change:]
                continue
            offset, new = change
            if len(data) < offset:
                data.extend(bytes(offset - len(data)))
            data[offset : offset + len(new)] = new
        return bytes(data)


@dataclass(frozen=True)
class _Linked:
    name: str
    file: _File


@dataclass(frozen=True)
class _Renamed:
    old: str
    new: str


@dataclass(frozen=True)
class _Unlinked:
    name: str


_NameChange = _Linked | _Renamed | _Unlinked


class PowerCut(BaseException):
    """The process that was running when the power went runs no further."""


class VolatileDisk:
    """Records what happens to the files of one folder, from :meth:`__enter__` on.

    Args:
        cut_after: so many changes later the power goes: :attr:`is_off` from then on, and every
            change raises :class:`PowerCut` in whoever makes it.
        loses: from this sync on each says that it worked and did not, for a test of this class.
    """

    def __init__(self, folder: Path, *, cut_after: int | None = None, loses: int = -1) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self.is_off = False
        self.changes = 0
        self._cut_after = cut_after
        self._loses = loses
        self._syncs = 0
        self._names: dict[str, _File] = {}
        self._durable_names: dict[str, _File] = {}
        self._pending_names: list[_NameChange] = []
        self._real: dict[str, Callable[..., Any]] = {}
        self._patches = ExitStack()

    def __enter__(self) -> VolatileDisk:
        for path in self.folder.iterdir():
            self._names[path.name] = self._durable_names[path.name] = _File(path.read_bytes())
        for name in ("open", "writev", "pwrite", "ftruncate", "replace", "unlink"):
            self._patch(name, getattr(self, f"_{name}"))
        for name in ("fsync", "fdatasync"):
            self._patch(name, self._sync)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._patches.close()

    def after(self, chance: random.Random, folder: Path) -> None:
        """Write into ``folder`` what the disk may hold when the power comes back."""
        with self.lock:
            names = _named(self._durable_names, [])
            likelihood = chance.choice((0.0, 0.5, 1.0))
            kept = [item for item in self._pending_names if chance.random() < likelihood]
            names = _named(names, kept)
            folder.mkdir(parents=True)
            for name, file in names.items():
                (folder / name).write_bytes(file.left(chance))

    def _patch(self, name: str, replacement: Callable[..., Any]) -> None:
        self._real[name] = getattr(os, name)
        self._patches.enter_context(mock.patch.object(os, name, replacement))

    def _changed(self) -> None:
        if self.is_off:
            raise PowerCut
        self.changes += 1
        if self._cut_after is not None and self.changes > self._cut_after:
            self.is_off = True
            raise PowerCut

    def _open(self, path: Any, flags: int, *rest: Any, **named: Any) -> int:
        where = Path(os.fsdecode(path)) if isinstance(path, str | bytes | os.PathLike) else None
        if where is None or where.parent != self.folder or not flags & os.O_CREAT:
            return int(self._real["open"](path, flags, *rest, **named))
        with self.lock:
            is_new = not where.exists()
            if is_new:
                self._changed()
            fd = int(self._real["open"](path, flags, *rest, **named))
            if is_new:
                file = self._names[where.name] = _File()
                self._pending_names.append(_Linked(where.name, file))
            return fd

    def _writev(self, fd: int, parts: Sequence[Any]) -> int:
        with self.lock:
            file = self._file(fd)
            if file is not None:
                self._changed()
                offset = os.fstat(fd).st_size
            written = int(self._real["writev"](fd, parts))
            if file is not None:
                data = b"".join(bytes(part) for part in parts)[:written]
                file.pending.append((offset, data))
            return written

    def _pwrite(self, fd: int, data: bytes, offset: int) -> int:
        with self.lock:
            file = self._file(fd)
            if file is not None:
                self._changed()
                file.pending.append((offset, bytes(data)))
            return int(self._real["pwrite"](fd, data, offset))

    def _ftruncate(self, fd: int, length: int) -> None:
        with self.lock:
            file = self._file(fd)
            if file is not None:
                self._changed()
                file.pending.append(length)
            self._real["ftruncate"](fd, length)

    def _replace(self, old: Any, new: Any, **named: Any) -> None:
        with self.lock:
            if Path(new).parent == self.folder:
                self._changed()
                self._names[Path(new).name] = self._names.pop(Path(old).name)
                self._pending_names.append(_Renamed(Path(old).name, Path(new).name))
            self._real["replace"](old, new, **named)

    def _unlink(self, path: Any, **named: Any) -> None:
        with self.lock:
            if Path(path).parent == self.folder and Path(path).name in self._names:
                self._changed()
                del self._names[Path(path).name]
                self._pending_names.append(_Unlinked(Path(path).name))
            self._real["unlink"](path, **named)

    def _sync(self, fd: int) -> None:
        """Nothing is really synced: the real disk is not what is tested."""
        with self.lock:
            path = _path(fd)
            if path is None or self.folder not in (path, path.parent):
                return
            self._changed()
            self._syncs += 1
            if 0 <= self._loses <= self._syncs:
                return
            if path == self.folder:
                self._durable_names = dict(self._names)
                self._pending_names = []
            else:
                self._names[path.name].sync()

    def _file(self, fd: int) -> _File | None:
        path = _path(fd)
        if path is None or path.parent != self.folder:
            return None
        return self._names.get(path.name)


def _path(fd: int) -> Path | None:
    try:
        return Path(os.readlink(f"/proc/self/fd/{fd}"))
    except OSError:
        return None


def _named(names: dict[str, _File], changes: Sequence[_NameChange]) -> dict[str, _File]:
    names = dict(names)
    for change in changes:
        if isinstance(change, _Linked):
            names[change.name] = change.file
        elif isinstance(change, _Unlinked):
            names.pop(change.name, None)
        elif change.old in names:
            names[change.new] = names.pop(change.old)
    return names


def _sectors(offset: int, data: bytes) -> list[tuple[int, bytes]]:
    """A write as the parts that the disk writes whole."""
    parts = []
    position = offset
    end = offset + len(data)
    while position < end:
        border = min(end, (position // SECTOR_BYTES + 1) * SECTOR_BYTES)
        parts.append((position, data[position - offset : border - offset]))
        position = border
    return parts
