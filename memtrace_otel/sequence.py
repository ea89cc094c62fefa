"""The counter of this process's memory operations: a gap in it proves a loss."""

from __future__ import annotations

import itertools
import secrets


class ProcessSequence:
    """``<process>:<n>`` from 1. ``renew`` after a fork: a child counts for itself."""

    __slots__ = ("_numbers", "process", "started")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """A new process id (8 random hex digits) and numbers from 1 again."""
        self.process = secrets.token_hex(4)
        self.started = False
        self._numbers = itertools.count(1)

    def next(self) -> str:
        """The next number. Atomic: ``next`` of a C iterator holds the interpreter lock."""
        self.started = True
        return f"{self.process}:{next(self._numbers)}"
