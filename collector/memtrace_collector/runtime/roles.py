"""Which parts of the service a process runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Role:
    """``command``: under which name it is started. All of them serve the API."""

    command: str
    has_log: bool
    """Keeps a log, in a folder of its own, and projects it."""
    receives: bool = False
    """Takes OTLP into its log, and forwards that."""
    works: bool = False
    """Judges flagged answers, and delivers the verdicts."""
    watches: bool = False
    """Watches the memory invariants, and keeps the full-text index."""


UP = Role("up", has_log=True, receives=True, works=True, watches=True)
PROCESS = Role("process", has_log=True, receives=True)
WORK = Role("work", has_log=False, works=True)
SERVE = Role("serve", has_log=True, watches=True)
