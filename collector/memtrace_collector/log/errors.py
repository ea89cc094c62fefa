"""Why the log did not take a record. In both retryable cases the sender should come back."""

from __future__ import annotations

from memtrace_collector.errors import StoreInUseError


class LogError(Exception):
    """The log could not do what was asked; nothing acknowledged is affected."""


class LogOverloadedError(LogError):
    """The bounded queue before the disk is full: retry later."""


class LogUnavailableError(LogError):
    """The disk refused the write (full, failing, read-only) or the log is closing: retry later."""


class LogInUseError(LogError, StoreInUseError):
    """Another process owns this log folder."""
