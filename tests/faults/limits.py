"""Disks that are full or fail, folders that refuse and tables that run out, without any mount."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

NOBODY = 65534


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file grows beyond ``size`` bytes: the kernel writes short, then refuses.

    It says EFBIG and not ENOSPC; programs meet the two in the same places. Python ignores the
    signal that goes with it.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """This process cannot open another file."""
    with contextlib.ExitStack() as opened:
        free = os.open(os.devnull, os.O_RDONLY)
        opened.callback(os.close, free)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        used = max(int(name) for name in os.listdir("/proc/self/fd"))
        for _ in range(used):  # numbers below the highest may be free
            fd = os.open(os.devnull, os.O_RDONLY)
            opened.callback(os.close, fd)
            if fd > used:
                break
        resource.setrlimit(resource.RLIMIT_NOFILE, (fd + 1, before[1]))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        yield


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    """As root: this process without its rights. As anybody else: who it is."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def read_only(*folders: Path) -> Iterator[None]:
    """Whoever this is, nothing can be made in these folders."""
    modes = [folder.stat().st_mode for folder in folders]
    for folder in folders:
        folder.chmod(0o555)
    try:
        with another_user():
            yield
    finally:
        for folder, mode in zip(folders, modes):
            folder.chmod(mode)


@contextlib.contextmanager
def writev_as(write: Callable[[int, Sequence[Any]], int]) -> Iterator[None]:
    """``os.writev`` is another."""
    with mock.patch.object(os, "writev", write):
        yield
