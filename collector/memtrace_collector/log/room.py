"""Room on the disk: the log stops taking records before there is none."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

DEFAULT_RESERVE_BYTES = 1 << 30
DEFAULT_RESERVE_SHARE = 0.05
CHECK_SECONDS = 0.1
CHECK_BYTES = 16 << 20
_UNKNOWN = 1 << 62


class DiskRoom:
    """How many bytes the log may still write, asked of the file system now and then.

    Args:
        folder: any folder of the file system.
        reserve_bytes: what stays free for reading, projecting and serving; None: 1 GiB, or a
            twentieth of a smaller disk.
        statvfs: ``os.statvfs``.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        folder: Path,
        reserve_bytes: int | None = None,
        *,
        statvfs: Callable[[Path], os.statvfs_result] = os.statvfs,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._reserve = reserve_bytes
        self._statvfs = statvfs
        self._clock = clock
        self._lock = threading.Lock()
        self._left = 0
        self._check_at_left = 0
        self._check_at = float("-inf")

    def take(self, size: int, waiting: int = 0) -> bool:
        """Use ``size`` bytes of what is free beyond the reserve; False when there are fewer.

        ``waiting``: bytes that were taken before and are not in the file system yet.
        """
        with self._lock:
            if self._left - size < self._check_at_left or self._clock() >= self._check_at:
                self._ask(waiting)
            if size > self._left:
                return False
            self._left -= size
            return True

    def _ask(self, waiting: int) -> None:
        """A file system that cannot be asked refuses by itself when it is full."""
        try:
            disk = self._statvfs(self._folder)
        except OSError:
            self._left = _UNKNOWN
        else:
            free = disk.f_bavail * disk.f_frsize - waiting
            self._left = max(0, free - self._reserved(disk))
        self._check_at_left = self._left - CHECK_BYTES
        self._check_at = self._clock() + CHECK_SECONDS

    def _reserved(self, disk: os.statvfs_result) -> int:
        if self._reserve is not None:
            return self._reserve
        share = int(disk.f_blocks * disk.f_frsize * DEFAULT_RESERVE_SHARE)
        return min(DEFAULT_RESERVE_BYTES, share)
